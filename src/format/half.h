// IEEE 754 half precision by integer arithmetic, for conversions off the hot path.
#pragma once

#include <algorithm>
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
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const float size = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00U);
  if (size >= 65520.0F) return static_cast<uint16_t>(sign | 0x7c00U);
  const int exponent = std::max(std::ilogb(size == 0 ? 1e-30F : size), -14);
  const float scaled = std::nearbyint(std::ldexp(size, 10 - exponent));  // 0 … 2048
  const auto fraction = static_cast<uint32_t>(scaled);
  // A fraction that reached 1024 or 2048 carries into the exponent by plain addition.
  const uint32_t base = static_cast<uint32_t>(exponent + 14) << 10;
  return static_cast<uint16_t>(sign | (base + fraction));
}

}  // namespace tandem::format
