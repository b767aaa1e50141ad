// SHA-256 of what comes in pieces.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tandem::replay {

/// Not thread-safe.
class Digest {
 public:
  using Value = std::array<uint8_t, 32>;

  Digest();

  /// Bytes, however they are cut.
  Digest& add(std::string_view bytes);

  /// Bytes as one field: what is a part of it cannot be taken for a part of its neighbours.
  Digest& add_field(std::string_view bytes);
  Digest& add_field(const Value& value);

  /// Of all bytes so far. More may follow.
  Value value() const;

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

/// 64 hex digits.
std::string hex_of(const Digest::Value& value);

}  // namespace tandem::replay
