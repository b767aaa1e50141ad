// PortableVec: eight floats in the compiler's vector extension. Kernels are templates over this and
// Avx2Vec; both have the same members.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/scalar_type.h"

namespace tandem::kernels {

struct PortableVec {
  using Floats = float __attribute__((vector_size(32)));
  using Words = uint32_t __attribute__((vector_size(32)));
  using Ints = int32_t __attribute__((vector_size(32)));
  static constexpr size_t kLanes = 8;

  Floats v;

  [[gnu::always_inline]] static PortableVec zero() { return {Floats{}}; }
  [[gnu::always_inline]] static PortableVec all(float x) { return {Floats{} + x}; }
  [[gnu::always_inline]] static PortableVec load(const float* p) {
    PortableVec out;
    std::memcpy(&out.v, p, sizeof(out.v));
    return out;
  }
  [[gnu::always_inline]] void store(float* p) const { std::memcpy(p, &v, sizeof(v)); }
  /// The first n < 8 lanes; the others read as zero.
  [[gnu::always_inline]] static PortableVec load(const float* p, size_t n) {
    float lanes[kLanes] = {};
    std::memcpy(lanes, p, n * sizeof(float));
    return load(lanes);
  }
  [[gnu::always_inline]] void store(float* p, size_t n) const {
    float lanes[kLanes];
    store(lanes);
    std::memcpy(p, lanes, n * sizeof(float));
  }

  friend PortableVec operator+(PortableVec a, PortableVec b) { return {a.v + b.v}; }
  friend PortableVec operator-(PortableVec a, PortableVec b) { return {a.v - b.v}; }
  friend PortableVec operator*(PortableVec a, PortableVec b) { return {a.v * b.v}; }
  friend PortableVec operator/(PortableVec a, PortableVec b) { return {a.v / b.v}; }
  /// a * b + c, in one rounding where the target has it.
  [[gnu::always_inline]] static PortableVec fma(PortableVec a, PortableVec b, PortableVec c) {
#ifdef __FP_FAST_FMAF
    Floats out;
    for (size_t i = 0; i < kLanes; ++i) out[i] = std::fma(a.v[i], b.v[i], c.v[i]);
    return {out};
#else
    return {a.v * b.v + c.v};
#endif
  }
  /// The smaller (larger) one; x where x is not a number.
  [[gnu::always_inline]] static PortableVec min(PortableVec limit, PortableVec x) {
    return {limit.v < x.v ? limit.v : x.v};
  }
  [[gnu::always_inline]] static PortableVec max(PortableVec limit, PortableVec x) {
    return {limit.v > x.v ? limit.v : x.v};
  }
  /// yes where a < b, else no.
  [[gnu::always_inline]] static PortableVec select_less(PortableVec a,
                                                        PortableVec b,
                                                        PortableVec yes,
                                                        PortableVec no) {
    return {a.v < b.v ? yes.v : no.v};
  }
  [[gnu::always_inline]] PortableVec absolute() const {
    return {reinterpret_cast<Floats>(reinterpret_cast<Words>(v) & 0x7fffffffu)};
  }
  /// Nearest integer, ties to even; requires |x| < 2^22.
  [[gnu::always_inline]] PortableVec rounded() const {
    const Floats magic = Floats{} + 12582912.0f;
    return {(v + magic) - magic};
  }
  /// 2^x for an integral x in [-126, 127].
  [[gnu::always_inline]] PortableVec power_of_two() const {
    const Ints exponent = __builtin_convertvector(v, Ints) + 127;
    return {reinterpret_cast<Floats>(exponent << 23)};
  }

  /// Sums in one fixed tree: lanes i and i + 4, then i and i + 2, then the last two.
  [[gnu::always_inline]] float sum() const {
    const float a = v[0] + v[4], b = v[1] + v[5], c = v[2] + v[6], d = v[3] + v[7];
    return (a + c) + (b + d);
  }
  [[gnu::always_inline]] float greatest() const {
    float most = v[0];
    for (size_t i = 1; i < kLanes; ++i) most = v[i] > most ? v[i] : most;
    return most;
  }

  // Weights.
  [[gnu::always_inline]] static Words load_words(const std::byte* p) {
    Words out;
    std::memcpy(&out, p, sizeof(out));
    return out;
  }
  /// Field kField of kBits in each word, times 2^(kBits * kField); the topmost field unscaled.
  template <int kBits, int kField>
  [[gnu::always_inline]] static PortableVec field(Words w) {
    constexpr int kShift = kBits * kField;
    constexpr uint32_t kMask = ((1u << kBits) - 1) << kShift;
    const Words bits = kShift + kBits == 32 ? w >> kShift : w & kMask;
    return {__builtin_convertvector(reinterpret_cast<Ints>(bits), Floats)};
  }
  [[gnu::always_inline]] static PortableVec low_bf16(Words w) {
    return {reinterpret_cast<Floats>(w << 16)};
  }
  [[gnu::always_inline]] static PortableVec high_bf16(Words w) {
    return {reinterpret_cast<Floats>(w & 0xffff0000u)};
  }
  /// Eight consecutive values of a storage type.
  [[gnu::always_inline]] static PortableVec load(const std::byte* p, ScalarType type) {
    PortableVec out;
    for (size_t i = 0; i < kLanes; ++i) out.v[i] = load_scalar(p, type, i);
    return out;
  }

  [[gnu::always_inline]] static void transpose(PortableVec (&rows)[8]) {
    PortableVec out[8];
    for (size_t i = 0; i < 8; ++i) {
      for (size_t j = 0; j < 8; ++j) out[i].v[j] = rows[j].v[i];
    }
    std::memcpy(rows, out, sizeof(out));
  }
};

}  // namespace tandem::kernels
