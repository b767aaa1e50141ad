// PortableVec: eight floats in the compiler's vector extension. Kernels are templates over this
// and the vectors of other levels; all have the same members.
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
  using Int32s = int32_t __attribute__((vector_size(32)));
  static constexpr size_t kLanes = 8;
  static constexpr int kTileRows = 6;  // rows that a dense product holds in registers
  struct Ints;                         // sums of a quantized product, one a lane

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
  /// 2^x for an integral x in [-126, 127]; 0 for -127.
  [[gnu::always_inline]] PortableVec power_of_two() const {
    const Int32s exponent = __builtin_convertvector(v, Int32s) + 127;
    return {reinterpret_cast<Floats>(exponent << 23)};
  }
  /// Lanes of a and b by turns: of their first halves, and of their second ones.
  [[gnu::always_inline]] static PortableVec zip_low(PortableVec a, PortableVec b) {
    return {Floats{a.v[0], b.v[0], a.v[1], b.v[1], a.v[2], b.v[2], a.v[3], b.v[3]}};
  }
  [[gnu::always_inline]] static PortableVec zip_high(PortableVec a, PortableVec b) {
    return {Floats{a.v[4], b.v[4], a.v[5], b.v[5], a.v[6], b.v[6], a.v[7], b.v[7]}};
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

  /// Lanes that are integers below 2^15 in magnitude, in the order 0, 2, 1, 3 within each four.
  [[gnu::always_inline]] void store_codes(int16_t* p) const {
    for (size_t i = 0; i < kLanes; ++i) p[i] = static_cast<int16_t>(v[i / 4 * 4 + kOrder[i % 4]]);
  }

  // Weights.
  [[gnu::always_inline]] static Words load_words(const std::byte* p) {
    Words out;
    std::memcpy(&out, p, sizeof(out));
    return out;
  }
  /// kBits bits of each word, from kShift on.
  template <int kBits, int kShift>
  [[gnu::always_inline]] static PortableVec field(Words w) {
    const Words bits = (w >> kShift) & ((1u << kBits) - 1);
    return {__builtin_convertvector(reinterpret_cast<Int32s>(bits), Floats)};
  }
  /// Words of four signed bytes: twice the values of the E2M1 codes in half kHalf (0: low) of each
  /// byte.
  template <int kHalf>
  [[gnu::always_inline]] static Words doubled_e2m1(Words w) {
    uint8_t bytes[sizeof(Words)];
    std::memcpy(bytes, &w, sizeof(w));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(kDoubledE2m1[byte >> (4 * kHalf) & 15]);
    std::memcpy(&w, bytes, sizeof(w));
    return w;
  }
  /// Byte kByte of each word.
  template <int kByte>
  [[gnu::always_inline]] static PortableVec signed_byte(Words w) {
    const Int32s values = reinterpret_cast<Int32s>(w << (24 - 8 * kByte)) >> 24;
    return {__builtin_convertvector(values, Floats)};
  }
  /// The value of the E4M3 code in byte kByte of each word, as from_e4m3().
  template <int kByte>
  [[gnu::always_inline]] static PortableVec e4m3(Words w) {
    const Words byte = w << (24 - 8 * kByte);
    const Floats magnitude = reinterpret_cast<Floats>(byte >> 4 & 0x07f00000u) * 0x1p120f;
    return {reinterpret_cast<Floats>(reinterpret_cast<Words>(magnitude) | (byte & 0x80000000u))};
  }
  [[gnu::always_inline]] static PortableVec low_bf16(Words w) {
    return {reinterpret_cast<Floats>(w << 16)};
  }
  [[gnu::always_inline]] static PortableVec high_bf16(Words w) {
    return {reinterpret_cast<Floats>(w & 0xffff0000u)};
  }
  /// kLanes consecutive values of a storage type.
  /// Scales in bytes: E4M3 or powers of two.
  [[gnu::always_inline]] static PortableVec load_scales(const std::byte* p, ScalarType type) {
    return load(p, type);
  }
  [[gnu::always_inline]] static PortableVec load(const std::byte* p, ScalarType type) {
    if (type == ScalarType::kF16) return load_halves(p);
    PortableVec out;
    for (size_t i = 0; i < kLanes; ++i) out.v[i] = load_scalar(p, type, i);
    return out;
  }

  /// As to_f16() of each lane.
  [[gnu::always_inline]] void store_halves(uint16_t* p) const {
    for (size_t i = 0; i < kLanes; ++i) p[i] = to_f16(v[i]);
  }

 private:
  /// As from_f16() of each lane, in vector operations.
  [[gnu::always_inline]] static PortableVec load_halves(const std::byte* p) {
    using Halves = uint16_t __attribute__((vector_size(16)));
    Halves halves;
    std::memcpy(&halves, p, sizeof(halves));
    const Words bits = __builtin_convertvector(halves, Words);
    const Words rest = (bits & 0x7fffu) << 13;
    const Floats scaled = reinterpret_cast<Floats>(rest) * 0x1p112f;
    const Int32s is_finite = reinterpret_cast<Int32s>(rest) < 0x0f800000;
    const Words magnitude = is_finite ? reinterpret_cast<Words>(scaled) : rest | 0x7f800000u;
    return {reinterpret_cast<Floats>(magnitude | (bits & 0x8000u) << 16)};
  }

  static constexpr size_t kOrder[4] = {0, 2, 1, 3};
};

/// A 32-bit integer a lane, or two 16-bit ones of which a product adds both.
struct PortableVec::Ints {
  using Lanes = Int32s;
  static constexpr int kTileRows = 4;  // rows that a product holds in registers

  Lanes v;

  [[gnu::always_inline]] static Ints zero() { return {Lanes{}}; }
  /// The two codes at p in every lane.
  [[gnu::always_inline]] static Ints pair(const int16_t* p) {
    int32_t both;
    std::memcpy(&both, p, sizeof(both));
    return {Lanes{} + both};
  }
  /// Pair kPair of a step's words (CodeLayout).
  template <int kBits, int kPair>
  [[gnu::always_inline]] static Ints codes(Words w) {
    constexpr int kShift = kPair / 2 * kBits + kPair % 2 * 8;
    constexpr uint32_t kMask = (1u << kBits) - 1;
    return {reinterpret_cast<Lanes>((w >> kShift) & (kMask | kMask << 16))};
  }
  /// Pair kPair of words of four signed bytes.
  template <int kPair>
  [[gnu::always_inline]] static Ints signed_bytes(Words w) {
    const Words halves = kPair == 0 ? w << 8 : w;
    const Lanes low = reinterpret_cast<Lanes>(halves << 16) >> 24 & 0xffff;
    const Lanes high = reinterpret_cast<Lanes>(halves) >> 24 << 16;
    return {low | high};
  }
  /// sum + both products of a lane; exact while it fits 32 bits.
  [[gnu::always_inline]] static Ints dot(Ints sum, Ints a, Ints b) {
    const Lanes low = ((a.v << 16) >> 16) * ((b.v << 16) >> 16);
    return {sum.v + low + (a.v >> 16) * (b.v >> 16)};
  }
  [[gnu::always_inline]] PortableVec to_floats() const {
    return {__builtin_convertvector(v, Floats)};
  }
};

}  // namespace tandem::kernels
