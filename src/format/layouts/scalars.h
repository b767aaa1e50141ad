// Numbers of checkpoints one at a time, for scales and the like.
#pragma once

#include <cstring>

#include "format/half.h"
#include "format/tensor.h"

namespace tandem::format {

/// Types that scalar_at() reads.
inline bool is_scalar(Dtype dtype) {
  return dtype == Dtype::kF32 || dtype == Dtype::kF16 || dtype == Dtype::kBF16 ||
         dtype == Dtype::kF8E8M0;
}

/// Element `at` of numbers of a type that is_scalar(), exact.
inline float scalar_at(const std::byte* data, Dtype dtype, size_t at) {
  const std::byte* const from = data + at * size_of(dtype);
  if (dtype == Dtype::kF8E8M0) {
    const auto exponent = static_cast<int>(*from);
    return exponent == 255 ? NAN : std::ldexp(1.0F, exponent - 127);
  }
  if (dtype == Dtype::kF32) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return dtype == Dtype::kF16 ? from_half(bits) : from_bfloat16(bits);
}

/// Writes element `at` in float32, float16 or bfloat16, rounded to nearest.
inline void put_scalar(std::byte* data, Dtype dtype, size_t at, float value) {
  if (dtype == Dtype::kF32) {
    std::memcpy(data + at * sizeof(value), &value, sizeof(value));
    return;
  }
  const uint16_t bits = dtype == Dtype::kF16 ? to_half(value) : to_bfloat16(value);
  std::memcpy(data + at * sizeof(bits), &bits, sizeof(bits));
}

}  // namespace tandem::format
