// The GGUF container, versions 2 and 3: metadata and tensor places. Format: ggml's docs/gguf.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tandem::format {

/// A metadata value; numbers of all widths are widened.
using GgufValue = std::variant<uint64_t,
                               int64_t,
                               double,
                               bool,
                               std::string,
                               std::vector<uint64_t>,
                               std::vector<int64_t>,
                               std::vector<double>,
                               std::vector<bool>,
                               std::vector<std::string>>;

/// ggml's numbers for the tensor types that we read.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIq4Nl = 20,
  kIq4Xs = 23,
  kBF16 = 30,
  kMxfp4 = 39
};

struct GgufTensor {
  uint32_t type = 0;           // a GgmlType, or a type that we do not read
  std::vector<int64_t> shape;  // row-major: the file's dimensions reversed
  uint64_t offset = 0;         // from the start of the file
  size_t part = 0;             // which file of a model in several
};

/// A decoded header. Immutable.
class Gguf {
 public:
  /// Decodes a header; `bytes` may hold the whole file or only its beginning, `file_size` is the
  /// file's length. kCorrupt when lengths, counts or offsets leave the file; kUnsupported for other
  /// versions.
  static Result<Gguf> parse(std::span<const std::byte> bytes, uint64_t file_size);

  /// Adds the tensors of another file of the same model, `part`. kCorrupt names one that is in
  /// both.
  Status add_part(const Gguf& other, size_t part);

  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return tensors_; }

  /// Metadata by key; nullopt when absent or of another kind. Any integer width will do for
  /// numbers.
  std::optional<uint64_t> number(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  const std::string* text(std::string_view key) const;
  const std::vector<std::string>* texts(std::string_view key) const;
  std::vector<double> reals(std::string_view key) const;
  /// Of truth values 0 and 1.
  std::vector<int64_t> integers(std::string_view key) const;

 private:
  const GgufValue* find(std::string_view key) const;

  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace tandem::format
