// Where a quantized panel keeps the code of a column: shared by packing, look-up and products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_matrix.h"

namespace tandem::kernels {

/// Codes are stored in steps of 32 / bits columns: 16 32-bit words, one an output. Byte b of a word
/// holds the codes of columns b, 4 + b, 8 + b, ... of the step, the first in its lowest bits: so a
/// shift and a mask give bytes of four neighbouring columns, or 16-bit numbers of two.
struct CodeLayout {
  uint32_t bits = 8;  // 2, 4 or 8
  uint32_t group = 64;
  ScalarType type = ScalarType::kF32;
  CodeKind kind = CodeKind::kAffine;

  size_t columns_per_step() const { return 32 / bits; }
  /// Scales, and biases where there are some.
  size_t header_bytes() const {
    return (kind == CodeKind::kAffine ? 2 : 1) * PackedMatrix::kPanel * size_of(type);
  }
  size_t group_bytes() const { return header_bytes() + group * PackedMatrix::kPanel * bits / 8; }

  /// Byte of the code of (column within the group, output within the panel), from the group's
  /// begin.
  size_t code_byte(size_t column, size_t output) const {
    const size_t step = column / columns_per_step();
    return header_bytes() + (step * PackedMatrix::kPanel + output) * 4 + column % 4;
  }
  uint32_t code_shift(size_t column) const {
    return static_cast<uint32_t>(column % columns_per_step() / 4) * bits;
  }
};

inline CodeLayout code_layout(const PackedMatrix& w) {
  return {
      .bits = w.stored_bits(), .group = w.group(), .type = w.scalar_type(), .kind = w.code_kind()};
}

/// A vector of scales or biases as stored.
template <class V, CodeKind kKind>
[[gnu::always_inline]] inline V load_parameter(const std::byte* p, ScalarType type) {
  if constexpr (kKind == CodeKind::kAffine)
    return V::load(p, type);
  else
    return V::load_scales(p, type);
}

/// What a code is multiplied by its scale as.
[[gnu::always_inline]] inline float value_of_code(CodeKind kind, uint32_t code) {
  if (kind == CodeKind::kE2m1) return 0.5f * static_cast<float>(kDoubledE2m1[code]);
  if (kind == CodeKind::kE4m3) return from_e4m3(static_cast<uint8_t>(code));
  return static_cast<float>(code);
}

/// Dense panels: f32 and f16 hold 16 values a column; bf16 holds 16 words of two columns, the first
/// in the low half.
inline size_t dense_offset(ScalarType type, size_t column, size_t output) {
  if (type == ScalarType::kBf16)
    return (column / 2 * PackedMatrix::kPanel + output) * 2 + column % 2;
  return column * PackedMatrix::kPanel + output;
}

}  // namespace tandem::kernels
