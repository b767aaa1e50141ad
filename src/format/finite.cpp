#include "format/finite.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace tandem::format {
namespace {

/// A number is NaN or infinite when all bits of its exponent are set: then one more at the lowest
/// of them carries into the sign. Words of eight bytes hold two or four numbers side by side.
struct Exponent {
  uint64_t bits;
  uint64_t lowest;
  uint64_t signs;
};

constexpr Exponent kF32 = {0x7F800000'7F800000, 0x00800000'00800000, 0x80000000'80000000};
constexpr Exponent kF16 = {0x7C007C00'7C007C00, 0x04000400'04000400, 0x80008000'80008000};
constexpr Exponent kBF16 = {0x7F807F80'7F807F80, 0x00800080'00800080, 0x80008000'80008000};

using Block = std::array<uint64_t, 16>;

bool is_finite(const Block& block, const Exponent& exponent) {
  uint64_t sums = 0;
  for (const uint64_t word : block) sums |= (word & exponent.bits) + exponent.lowest;
  return (sums & exponent.signs) == 0;
}

bool is_finite(const std::byte* from, size_t bytes, const Exponent& exponent) {
  Block block;
  size_t at = 0;
  for (; bytes - at >= sizeof(block); at += sizeof(block)) {
    std::memcpy(block.data(), from + at, sizeof(block));
    if (!is_finite(block, exponent)) return false;
  }
  block.fill(0);
  std::memcpy(block.data(), from + at, bytes - at);
  return is_finite(block, exponent);
}

bool is_finite(const Tensor& tensor, const Window& w, const Exponent& exponent) {
  const size_t size = size_of(tensor.dtype);
  const std::byte* const data = tensor.bytes.data();
  if (w.first_column == 0 && w.end_column == w.width)  // one run
    return is_finite(data + w.first_row * w.width * size,
                     (w.end_row - w.first_row) * w.width * size, exponent);
  for (size_t row = w.first_row; row < w.end_row; ++row) {
    const std::byte* const from = data + (row * w.width + w.first_column) * size;
    if (!is_finite(from, (w.end_column - w.first_column) * size, exponent)) return false;
  }
  return true;
}

}  // namespace

bool is_finite(const Tensor& tensor, const Window& window) {
  switch (tensor.dtype) {
    case Dtype::kF32:
      return is_finite(tensor, window, kF32);
    case Dtype::kF16:
      return is_finite(tensor, window, kF16);
    case Dtype::kBF16:
      return is_finite(tensor, window, kBF16);
    default:
      return true;
  }
}

uint8_t greatest_byte(const Tensor& tensor, const Window& w, uint8_t mask) {
  const auto* data = reinterpret_cast<const uint8_t*>(tensor.bytes.data());
  uint8_t most = 0;
  for (size_t row = w.first_row; row < w.end_row; ++row)
    for (size_t at = w.first_column; at < w.end_column; ++at)
      most = std::max(most, static_cast<uint8_t>(data[row * w.width + at] & mask));
  return most;
}

}  // namespace tandem::format
