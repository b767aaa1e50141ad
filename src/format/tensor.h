// A tensor of a checkpoint: type, shape and bytes that stay mapped while anyone holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tandem::format {

enum class Dtype : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kBool
};

/// Bytes of one element.
size_t size_of(Dtype dtype);
/// The safetensors spelling, such as "BF16".
std::string_view name(Dtype dtype);
std::optional<Dtype> dtype_from_name(std::string_view name);

/// Row-major data. `bytes` may start at any address: read it unaligned.
struct Tensor {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void>
      owner;  // shared: a mapping or a buffer lives as long as its last view
};

/// Rows [begin, end) of a tensor's first axis.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Affine quantization of a module: w = code * scale + bias over groups of `group_size` inputs.
struct Quantization {
  int bits = 4;
  int group_size = 64;

  bool operator==(const Quantization&) const = default;
};

}  // namespace tandem::format
