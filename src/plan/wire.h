// Writer and Reader: values to bytes and back, symmetric, little-endian, bounded. FORMAT.md has the
// encoding of each type.
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tandem::plan {

using Bytes = std::vector<std::byte>;

/// The highest enumerator of an enumeration that travels; decoding refuses larger values.
template <class E>
inline constexpr uint8_t kLastEnumerator = 0;

/// `fields(archive, value)` lists a struct's members for both directions: found by the archive's
/// namespace, constrained by this.
template <class T, class Of>
concept IsOf = std::is_same_v<std::remove_const_t<T>, Of>;

namespace wire_detail {

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;
template <class T>
inline constexpr bool kIsDuration = false;
template <class R, class P>
inline constexpr bool kIsDuration<std::chrono::duration<R, P>> = true;
/// Types whose memory is their encoding.
template <class T>
inline constexpr bool kIsPlain =
    (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || std::is_same_v<T, std::byte>;

static_assert(std::endian::native == std::endian::little, "the codec copies integers as they lie");

}  // namespace wire_detail

/// Appends values to a byte string. Cannot fail.
class Writer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }

  /// A page table, as runs of consecutive ids.
  void page_table(const std::vector<uint32_t>& pages);

  void raw(const void* data, size_t bytes) {
    if (bytes == 0) return;
    const size_t at = out_.size();
    out_.resize(at + bytes);
    std::memcpy(out_.data() + at, data, bytes);
  }

  const Bytes& bytes() const { return out_; }
  Bytes take() { return std::move(out_); }

 private:
  template <class T>
  void put(const T& value) {
    using namespace wire_detail;
    if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>) {
      if constexpr (std::is_same_v<T, std::byte>) {
        raw(&value, 1);
      } else {
        put(static_cast<uint8_t>(value));
      }
    } else if constexpr (kIsPlain<T>) {
      raw(&value, sizeof value);
    } else if constexpr (kIsDuration<T>) {
      put(static_cast<int64_t>(value.count()));
    } else if constexpr (std::is_same_v<T, std::string>) {
      put(static_cast<uint32_t>(value.size()));
      raw(value.data(), value.size());
    } else if constexpr (kIsVector<T>) {
      put_vector(value);
    } else if constexpr (kIsOptional<T>) {
      put(value.has_value());
      if (value) put(*value);
    } else if constexpr (kIsVariant<T>) {
      put(static_cast<uint8_t>(value.index()));
      std::visit([this](const auto& held) { this->put(held); }, value);
    } else {
      fields(*this, value);
    }
  }

  template <class T>
  void put_vector(const std::vector<T>& values) {
    put(static_cast<uint32_t>(values.size()));
    if constexpr (wire_detail::kIsPlain<T>) {
      raw(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) put(value);
    }
  }

  Bytes out_;
};

/// Takes values from a byte string. Never throws and never reads past the end: the first failure
/// sticks, and everything after it reads as zero or empty. Call finish() before using what was
/// read.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }

  /// A page table; a plan may name kMaxPages pages in all.
  void page_table(std::vector<uint32_t>& pages);

  bool failed() const { return error_.has_value(); }
  void fail(ErrorCode code, std::string message);
  size_t offset() const { return at_; }
  size_t left() const { return in_.size() - at_; }

  /// Good when nothing failed and every byte was used. `what` names the thing in the error.
  Status finish(std::string_view what);

  static constexpr size_t kMaxPages = size_t{1} << 22;

 private:
  /// Null, and a failure, when fewer than `bytes` are left.
  const std::byte* need(size_t bytes);

  template <class T>
  void get(T& value) {
    using namespace wire_detail;
    if constexpr (std::is_same_v<T, bool>) {
      value = get_bounded(1) != 0;
    } else if constexpr (kIsPlain<T>) {
      const std::byte* from = need(sizeof value);
      value = T{};
      if (from) std::memcpy(&value, from, sizeof value);
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(get_bounded(kLastEnumerator<T>));
    } else if constexpr (kIsDuration<T>) {
      int64_t count = 0;
      get(count);
      value = T(count);
    } else if constexpr (std::is_same_v<T, std::string>) {
      get_string(value);
    } else if constexpr (kIsVector<T>) {
      get_vector(value);
    } else if constexpr (kIsOptional<T>) {
      value.reset();
      if (get_bounded(1) != 0) get(value.emplace());
    } else if constexpr (kIsVariant<T>) {
      get_variant(value, std::make_index_sequence<std::variant_size_v<T>>());
    } else {
      fields(*this, value);
    }
  }

  /// A byte that may be at most `last`.
  uint8_t get_bounded(uint8_t last);
  void get_string(std::string& value);

  template <class T>
  void get_vector(std::vector<T>& values) {
    values.clear();
    uint32_t count = 0;
    get(count);
    if constexpr (wire_detail::kIsPlain<T>) {
      const std::byte* from = need(size_t{count} * sizeof(T));
      if (!from || count == 0) return;
      values.resize(count);
      std::memcpy(values.data(), from, size_t{count} * sizeof(T));
    } else {
      // Grown as bytes are used up, so that a false count cannot make it allocate much.
      for (uint32_t i = 0; i < count && !failed(); ++i) get(values.emplace_back());
    }
  }

  template <class V, size_t... I>
  void get_variant(V& value, std::index_sequence<I...> /*all*/) {
    const uint8_t index = get_bounded(sizeof...(I) - 1);
    ((index == I ? get(value.template emplace<I>()) : void()), ...);
  }

  std::span<const std::byte> in_;
  size_t at_ = 0;
  size_t pages_ = 0;  // named so far
  std::optional<Error> error_;
};

}  // namespace tandem::plan
