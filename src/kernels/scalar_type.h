// Storage types of weights and quantization parameters, and their conversion to float32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tandem::kernels {

enum class ScalarType : uint8_t {
  kF32,
  kF16,
  kBf16,
  kE8m0,  // a power of two in a byte: of scales only
  kE4m3,  // a float of 8 bits, OCP's without infinities: of scales only
};

constexpr size_t size_of(ScalarType type) {
  return type == ScalarType::kF32                                 ? 4
         : type == ScalarType::kE8m0 || type == ScalarType::kE4m3 ? 1
                                                                  : 2;
}

/// Twice the values of E2M1 (a float of 4 bits): signed integers, whose products add up exactly.
inline constexpr int8_t kDoubledE2m1[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

/// 2^(bits - 127), but 0 for 0, whose power no product could tell from it.
[[gnu::always_inline]] inline float from_e8m0(uint8_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 23);
}

/// Exact; the two codes of NaN, which no kernel meets, become 480.
[[gnu::always_inline]] inline float from_e4m3(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  // Moves the exponent by multiplication, which also normalises subnormal values.
  const float magnitude = std::bit_cast<float>((bits & 0x7fu) << 20) * 0x1p120f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

[[gnu::always_inline]] inline float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Exact, also for subnormal, infinite and NaN values.
[[gnu::always_inline]] inline float from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  // Moves the exponent by multiplication, which also normalises subnormal values.
  const float magnitude = std::bit_cast<float>(rest << 13) * std::bit_cast<float>(0x77800000u);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

/// The nearest value, ties to even; what is larger than any becomes the largest, NaN stays NaN.
[[gnu::always_inline]] inline uint16_t to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  uint32_t half;
  if (rest > 0x7f800000u) {
    half = 0x7e00u;
  } else if (rest >= 0x477fe000u) {  // 65504
    half = 0x7bffu;
  } else if (rest >= 0x38800000u) {  // 2^-14
    half = (rest + 0xfffu + ((rest >> 13) & 1u) - 0x38000000u) >> 13;
  } else {
    // The last bit of a number near a half is that of a subnormal half.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  }
  return static_cast<uint16_t>(sign | half);
}

/// Element `index` of an array of `type`.
[[gnu::always_inline]] inline float load_scalar(const void* data, ScalarType type, size_t index) {
  if (type == ScalarType::kF32) {
    float value;
    std::memcpy(&value, static_cast<const char*>(data) + index * 4, 4);
    return value;
  }
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (type == ScalarType::kE8m0) return from_e8m0(bytes[index]);
  if (type == ScalarType::kE4m3) return from_e4m3(bytes[index]);
  uint16_t bits;
  std::memcpy(&bits, bytes + index * 2, 2);
  return type == ScalarType::kF16 ? from_f16(bits) : from_bf16(bits);
}

}  // namespace tandem::kernels
