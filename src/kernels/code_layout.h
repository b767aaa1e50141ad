// Where a quantized panel keeps the code of a column: shared by packing, look-up and products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_matrix.h"

namespace tandem::kernels {

/// Codes are stored in steps of 32 / bits columns: 16 32-bit words, one an output, each a
/// little-endian bit stream of the step's columns. A product masks a field out of its word in place
/// and so multiplies by code * 2^(place of the field); x is divided by that power of two
/// beforehand, which is exact. The topmost field is shifted down instead, because it holds the sign
/// bit.
struct CodeLayout {
  uint32_t bits = 8;  // 2, 4 or 8
  uint32_t group = 64;
  ScalarType type = ScalarType::kF32;

  size_t columns_per_step() const { return 32 / bits; }
  size_t header_bytes() const { return 2 * PackedMatrix::kPanel * size_of(type); }
  size_t group_bytes() const { return header_bytes() + group * PackedMatrix::kPanel * bits / 8; }

  /// Byte of the code of (column within the group, output within the panel), from the group's
  /// begin.
  size_t code_byte(size_t column, size_t output) const {
    const size_t step = column / columns_per_step();
    const size_t byte = column % columns_per_step() * bits / 8;
    return header_bytes() + (step * PackedMatrix::kPanel + output) * 4 + byte;
  }
  /// 2 to the power of minus the place of a column's field as a product reads it.
  float column_factor(size_t column) const {
    const size_t field = column % columns_per_step();
    if (field + 1 == columns_per_step()) return 1.0f;
    return 1.0f / static_cast<float>(uint64_t{1} << (field * bits));
  }
  uint32_t code_shift(size_t column) const { return static_cast<uint32_t>(column) * bits % 8; }
};

inline CodeLayout code_layout(const PackedMatrix& w) {
  return {.bits = w.stored_bits(), .group = w.group(), .type = w.scalar_type()};
}

/// Dense panels: f32 and f16 hold 16 values a column; bf16 holds 16 words of two columns, the first
/// in the low half.
inline size_t dense_offset(ScalarType type, size_t column, size_t output) {
  if (type == ScalarType::kBf16)
    return (column / 2 * PackedMatrix::kPanel + output) * 2 + column % 2;
  return column * PackedMatrix::kPanel + output;
}

}  // namespace tandem::kernels
