#include "comm/sum.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace tandem::comm {
namespace {

// The loops over a tile have a fixed length, which is what lets -O2 vectorise them.
constexpr size_t kTile = 128;

/// A choice without a branch, since -O2 vectorises no loop with one. Compare as signed numbers:
/// that is what vector units of every level have.
uint32_t choose(bool condition, uint32_t yes, uint32_t no) {
  const uint32_t mask = 0U - static_cast<uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

struct Float32 {
  using Stored = float;
  static float widen(float x) { return x; }
  static float narrow(float x) { return x; }
};

struct Bfloat16 {
  using Stored = uint16_t;
  static float widen(uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16U); }
  static uint16_t narrow(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
    const bool nan = static_cast<int32_t>(bits & 0x7fffffffU) > 0x7f800000;
    const uint32_t quiet = (bits >> 16U) | 0x40U;
    return static_cast<uint16_t>(choose(nan, quiet, rounded));
  }
};

struct Float16 {
  using Stored = uint16_t;
  static float widen(uint16_t x) {
    const uint32_t sign = (uint32_t{x} & 0x8000U) << 16U;
    const uint32_t rest = uint32_t{x} & 0x7fffU;
    // Multiplying by 2^112 moves the exponent's bias and makes subnormals normal, without rounding.
    const float scaled = std::bit_cast<float>(rest << 13U) * 0x1p112F;
    const uint32_t special = 0x7f800000U | (rest << 13U);  // infinity and NaN
    const bool finite = static_cast<int32_t>(rest) < 0x7c00;
    return std::bit_cast<float>(sign | choose(finite, std::bit_cast<uint32_t>(scaled), special));
  }
  static uint16_t narrow(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t rest = bits & 0x7fffffffU;
    const auto size = static_cast<int32_t>(rest);
    // Below 2^-14 the half is subnormal: adding 0.5 lets the float adder round at bit 2^-24.
    const float shifted = std::bit_cast<float>(choose(size < 0x38800000, rest, 0)) + 0.5F;
    const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - 0x3f000000U;
    const uint32_t normal = (rest - 0x38000000U + 0xfffU + ((rest >> 13U) & 1U)) >> 13U;
    const uint32_t finite = choose(size < 0x38800000, subnormal, normal);
    const uint32_t special = choose(size > 0x7f800000, 0x7e00U, 0x7c00U);
    return static_cast<uint16_t>(((bits >> 16U) & 0x8000U) |
                                 choose(size >= 0x477ff000, special, finite));
  }
};

/// Adds the same tile of every part. Only a whole tile has the fixed length that vectorises.
template <class Type, size_t kLength>
void sum_tile(std::span<const std::byte* const> parts, size_t begin, std::byte* out) {
  using Stored = typename Type::Stored;
  float sum[kLength];
  const auto* first = reinterpret_cast<const Stored*>(parts[0]) + begin;
  for (size_t i = 0; i < kLength; ++i) sum[i] = Type::widen(first[i]);
  for (const std::byte* part : parts.subspan(1)) {
    const auto* next = reinterpret_cast<const Stored*>(part) + begin;
    for (size_t i = 0; i < kLength; ++i) sum[i] += Type::widen(next[i]);
  }
  Stored narrow[kLength];
  for (size_t i = 0; i < kLength; ++i) narrow[i] = Type::narrow(sum[i]);
  std::memcpy(reinterpret_cast<Stored*>(out) + begin, narrow, sizeof narrow);
}

template <class Type>
void sum_all(std::span<const std::byte* const> parts, size_t count, std::byte* out) {
  size_t i = 0;
  for (; i + kTile <= count; i += kTile) sum_tile<Type, kTile>(parts, i, out);
  for (; i < count; ++i) sum_tile<Type, 1>(parts, i, out);
}

}  // namespace

size_t size_of(Dtype dtype) { return dtype == Dtype::kFloat32 ? 4 : 2; }

void ordered_sum(std::span<const std::byte* const> parts,
                 size_t count,
                 Dtype dtype,
                 std::byte* out) {
  switch (dtype) {
    case Dtype::kFloat32:
      return sum_all<Float32>(parts, count, out);
    case Dtype::kBfloat16:
      return sum_all<Bfloat16>(parts, count, out);
    case Dtype::kFloat16:
      return sum_all<Float16>(parts, count, out);
  }
}

}  // namespace tandem::comm
