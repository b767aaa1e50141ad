// IEEE 754 half precision and bfloat16 by integer arithmetic, for conversions off the hot path.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tandem::format {

/// The value of a half-precision number, exact.
inline float from_half(uint16_t bits) {
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = (bits >> 10) & 31;
  const auto fraction = static_cast<float>(bits & 1023U);
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * std::ldexp(1024.0F + fraction, exponent - 25);
}

/// The nearest half-precision number, ties to even; too large becomes infinity.
inline uint16_t to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t size = bits & 0x7fffffffU;
  if (size > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U);
  if (size >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // from 65520 on
  if (size < 0x38800000U) {  // below 2^-14: a sum with 0.5 rounds to multiples of 2^-24
    const auto sum = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5F);
    return static_cast<uint16_t>(sign | (sum - 0x3f000000U));
  }
  const uint32_t rounded = size + 0xfffU + ((size >> 13) & 1U);  // carries into the exponent
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

/// The value of a bfloat16 number, exact.
inline float from_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// The nearest bfloat16 number, ties to even; NaN stays NaN.
inline uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace tandem::format
