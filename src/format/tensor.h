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
  kBool,
  kF8E4M3,  // without infinities
  kF8E5M2,
  kF8E8M0  // a power of two, for scales
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

/// How codes and scales stand for weights, under MLX's names. Codes of the micro-scaled ones are
/// OCP's floats, their scales bytes: powers of two (E8M0), or E4M3 in nvfp4.
enum class QuantMode : uint8_t {
  kAffine,  // code * scale + bias
  kMxfp4,   // E2M1 * scale, groups of 32
  kMxfp8,   // E4M3 * scale, groups of 32
  kNvfp4,   // E2M1 * scale, groups of 16
};

std::string_view name(QuantMode mode);
std::optional<QuantMode> quant_mode_from_name(std::string_view name);

/// Quantization of a module: `group_size` inputs of an output share a scale.
struct Quantization {
  int bits = 4;
  int group_size = 64;
  QuantMode mode = QuantMode::kAffine;

  bool operator==(const Quantization&) const = default;
};

}  // namespace tandem::format
