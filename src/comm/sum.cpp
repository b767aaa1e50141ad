#include "comm/sum.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace tandem::comm {
namespace {

// The loops over a tile have a fixed length, which is what lets -O2 vectorise them.
constexpr size_t kTile = 64;

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
    const uint32_t quiet = (bits >> 16U) | 0x40U;
    return static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
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
    return std::bit_cast<float>(sign |
                                (rest >= 0x7c00U ? special : std::bit_cast<uint32_t>(scaled)));
  }
  static uint16_t narrow(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t sign = (bits >> 16U) & 0x8000U;
    const uint32_t rest = bits & 0x7fffffffU;
    // Below 2^-14 the half is subnormal: adding 0.5 lets the float adder round at bit 2^-24.
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(rest < 0x38800000U ? rest : 0U) + 0.5F) -
        0x3f000000U;
    const uint32_t normal = (rest - 0x38000000U + 0xfffU + ((rest >> 13U) & 1U)) >> 13U;
    const uint32_t special = rest > 0x7f800000U ? 0x7e00U : 0x7c00U;
    const uint32_t finite = rest < 0x38800000U ? subnormal : normal;
    return static_cast<uint16_t>(sign | (rest >= 0x477ff000U ? special : finite));
  }
};

template <class Type>
void sum_tile(std::span<const std::byte* const> parts,
              size_t offset,
              size_t bytes,
              std::byte* out) {
  typename Type::Stored stored[kTile] = {};
  float sum[kTile];
  std::memcpy(stored, parts[0] + offset, bytes);
  for (size_t i = 0; i < kTile; ++i) sum[i] = Type::widen(stored[i]);
  for (const std::byte* part : parts.subspan(1)) {
    std::memcpy(stored, part + offset, bytes);
    for (size_t i = 0; i < kTile; ++i) sum[i] += Type::widen(stored[i]);
  }
  for (size_t i = 0; i < kTile; ++i) stored[i] = Type::narrow(sum[i]);
  std::memcpy(out + offset, stored, bytes);
}

template <class Type>
void sum_all(std::span<const std::byte* const> parts, size_t count, std::byte* out) {
  constexpr size_t kItem = sizeof(typename Type::Stored);
  const size_t whole = count / kTile * kTile;
  for (size_t i = 0; i < whole; i += kTile) {
    sum_tile<Type>(parts, i * kItem, kTile * kItem, out);
  }
  if (whole < count) sum_tile<Type>(parts, whole * kItem, (count - whole) * kItem, out);
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
