// Random inputs and comparisons for the kernels' tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "kernels/packed_matrix.h"
#include "kernels/pool.h"

namespace tandem::kernels {

/// Seeded, so that a failure repeats.
class TestRandom {
 public:
  explicit TestRandom(uint32_t seed) : engine_(seed) {}

  /// In [low, high].
  size_t size(size_t low, size_t high) {
    return std::uniform_int_distribution<size_t>(low, high)(engine_);
  }
  bool chance(double probability) { return std::bernoulli_distribution(probability)(engine_); }
  float normal() { return std::normal_distribution<float>()(engine_); }
  std::vector<float> normals(size_t count, float factor = 1.0f) {
    std::vector<float> out(count);
    for (float& x : out) x = normal() * factor;
    return out;
  }
  std::vector<uint8_t> bytes(size_t count) {
    std::vector<uint8_t> out(count);
    for (uint8_t& x : out) x = static_cast<uint8_t>(engine_());
    return out;
  }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[size(0, from.size() - 1)];
  }

 private:
  std::mt19937 engine_;
};

inline uint16_t to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<uint16_t>(bits >> 16);
}

/// Values of `type` with few significant bits, so that every type holds them exactly.
inline std::vector<std::byte> encode(const std::vector<float>& values, ScalarType type) {
  std::vector<std::byte> out(values.size() * size_of(type));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == ScalarType::kF32) {
      std::memcpy(&out[i * 4], &values[i], 4);
      continue;
    }
    uint16_t half = to_bf16(values[i]);
    if (type == ScalarType::kF16) {
      int exponent;
      const float fraction = std::frexp(values[i], &exponent);  // 10 bits kept, in range by use
      const int mantissa = static_cast<int>(std::ldexp(std::fabs(fraction), 11));
      half = exponent < -13 || mantissa == 0
                 ? uint16_t{0}
                 : static_cast<uint16_t>((values[i] < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) |
                                         (mantissa & 0x3ff));
    }
    std::memcpy(&out[i * 2], &half, 2);
  }
  return out;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Sanitizers look for bad accesses, which smaller sizes have too, at many times the cost.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

/// How many random cases are tried: fewer where each costs many times as much.
constexpr uint32_t cases(uint32_t usual) { return kIsSanitized ? usual / 3 : usual; }

/// The greatest |a - b| / (1 + |b|); infinite when a value is not finite.
inline double worst_error(const std::vector<float>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::fabs(static_cast<double>(a[i]) - b[i]) / (1 + std::fabs(b[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  }
  return worst;
}

/// The levels that this machine runs.
inline std::vector<CpuLevel> test_levels() { return cpu_levels(); }

/// The value of a float of so many bits, by its definition. No NaN.
inline double value_of_float(uint32_t code, int exponent_bits, int mantissa_bits) {
  const int exponent = static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double mantissa = code & ((1u << mantissa_bits) - 1), one = 1 << mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double size = exponent == 0 ? std::ldexp(mantissa / one, 1 - bias)
                                    : std::ldexp(1 + mantissa / one, exponent - bias);
  return (code >> (exponent_bits + mantissa_bits) & 1) == 0 ? size : -size;
}

/// Codes that are floats, with scales in bytes.
struct TestFloats {
  CodeKind kind = CodeKind::kE2m1;
  ScalarType scales = ScalarType::kE8m0;
  uint32_t group = 32;

  static TestFloats mxfp4() { return {}; }
  static TestFloats mxfp8() { return {.kind = CodeKind::kE4m3}; }
  static TestFloats nvfp4() { return {.scales = ScalarType::kE4m3, .group = 16}; }
};

/// A random quantized matrix with the memory behind its view.
struct TestQuantized {
  std::vector<uint8_t> codes;
  std::vector<std::byte> scales, biases;
  QuantizedView view;

  TestQuantized(TestRandom& random, size_t rows, size_t groups, TestFloats floats) {
    view.kind = floats.kind;
    view.bits = floats.kind == CodeKind::kE2m1 ? 4 : 8;
    view.group = floats.group;
    view.scale_type = floats.scales;
    view.rows = rows;
    view.cols = groups * floats.group;
    view.is_in_float32 = random.chance(0.3);
    codes = random.bytes(rows * view.cols * view.bits / 8);
    for (uint8_t& code : codes)
      if (view.bits == 8 && (code & 0x7f) == 0x7f) code = 0x80;  // no NaN
    for (size_t i = 0; i < rows * groups; ++i) {
      const auto [low, high] =
          floats.scales == ScalarType::kE8m0 ? std::pair(118, 128) : std::pair(0, 70);
      scales.push_back(static_cast<std::byte>(random.size(size_t(low), size_t(high))));
    }
    view.codes = codes.data();
    view.scales = scales.data();
  }

  TestQuantized(TestRandom& random, size_t rows, size_t groups, uint32_t bits, uint32_t group) {
    view.rows = rows;
    view.cols = groups * group;
    view.bits = bits;
    view.group = group;
    view.scale_type = random.pick({ScalarType::kF32, ScalarType::kF16, ScalarType::kBf16});
    const float step = 1.0f / static_cast<float>(1u << bits);
    codes = random.bytes(rows * view.cols * bits / 8);
    scales = encode(random.normals(rows * groups, step), view.scale_type);
    biases = encode(random.normals(rows * groups, 0.5f), view.scale_type);
    view.codes = codes.data();
    view.scales = scales.data();
    view.biases = biases.data();
  }

  /// The weight as a double, read straight from the bit stream.
  double weight(size_t row, size_t col) const {
    const size_t bit = (row * view.cols + col) * view.bits;
    uint32_t code = 0;
    for (uint32_t b = 0; b < view.bits; ++b) {
      code |= ((codes[(bit + b) / 8] >> ((bit + b) % 8)) & 1u) << b;
    }
    const size_t g = row * (view.cols / view.group) + col / view.group;
    if (view.kind != CodeKind::kAffine) {
      const auto byte = static_cast<uint32_t>(scales[g]);
      const double factor = view.scale_type == ScalarType::kE8m0
                                ? std::ldexp(1.0, static_cast<int>(byte) - 127)
                                : value_of_float(byte, 4, 3);
      return factor * (view.bits == 4 ? value_of_float(code, 2, 1) : value_of_float(code, 4, 3));
    }
    const double scale = load_scalar(scales.data(), view.scale_type, g);
    return code * scale + static_cast<double>(load_scalar(biases.data(), view.scale_type, g));
  }
};

}  // namespace tandem::kernels
