// NeonVec: eight floats in two NEON registers. Only for AArch64, whose baseline has all of it.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/scalar_type.h"

namespace tandem::kernels {

/// The same members as PortableVec (see there).
struct NeonVec {
  using Words = uint32x4x2_t;
  static constexpr size_t kLanes = 8;
  static constexpr int kTileRows = 6;
  struct Ints;

  float32x4_t low, high;

  [[gnu::always_inline]] static NeonVec zero() { return all(0.0f); }
  [[gnu::always_inline]] static NeonVec all(float x) {
    const float32x4_t four = vdupq_n_f32(x);
    return {four, four};
  }
  [[gnu::always_inline]] static NeonVec load(const float* p) {
    return {vld1q_f32(p), vld1q_f32(p + 4)};
  }
  [[gnu::always_inline]] void store(float* p) const {
    vst1q_f32(p, low);
    vst1q_f32(p + 4, high);
  }
  [[gnu::always_inline]] static NeonVec load(const float* p, size_t n) {
    float lanes[kLanes] = {};
    std::memcpy(lanes, p, n * sizeof(float));
    return load(lanes);
  }
  [[gnu::always_inline]] void store(float* p, size_t n) const {
    float lanes[kLanes];
    store(lanes);
    std::memcpy(p, lanes, n * sizeof(float));
  }

  friend NeonVec operator+(NeonVec a, NeonVec b) {
    return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
  }
  friend NeonVec operator-(NeonVec a, NeonVec b) {
    return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
  }
  friend NeonVec operator*(NeonVec a, NeonVec b) {
    return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
  }
  friend NeonVec operator/(NeonVec a, NeonVec b) {
    return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
  }
  [[gnu::always_inline]] static NeonVec fma(NeonVec a, NeonVec b, NeonVec c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
  // Not vminq_f32 and vmaxq_f32: those return NaN wherever either side is one.
  [[gnu::always_inline]] static NeonVec min(NeonVec limit, NeonVec x) {
    return select_less(limit, x, limit, x);
  }
  [[gnu::always_inline]] static NeonVec max(NeonVec limit, NeonVec x) {
    return select_less(x, limit, limit, x);
  }
  [[gnu::always_inline]] static NeonVec select_less(NeonVec a, NeonVec b, NeonVec yes, NeonVec no) {
    return {vbslq_f32(vcltq_f32(a.low, b.low), yes.low, no.low),
            vbslq_f32(vcltq_f32(a.high, b.high), yes.high, no.high)};
  }
  [[gnu::always_inline]] NeonVec absolute() const { return {vabsq_f32(low), vabsq_f32(high)}; }
  [[gnu::always_inline]] NeonVec rounded() const { return {vrndnq_f32(low), vrndnq_f32(high)}; }
  [[gnu::always_inline]] NeonVec power_of_two() const {
    return {power_of_two(low), power_of_two(high)};
  }
  [[gnu::always_inline]] static NeonVec zip_low(NeonVec a, NeonVec b) {
    return {vzip1q_f32(a.low, b.low), vzip2q_f32(a.low, b.low)};
  }
  [[gnu::always_inline]] static NeonVec zip_high(NeonVec a, NeonVec b) {
    return {vzip1q_f32(a.high, b.high), vzip2q_f32(a.high, b.high)};
  }

  [[gnu::always_inline]] float sum() const {
    const float32x4_t four = vaddq_f32(low, high);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vpadds_f32(two);
  }
  [[gnu::always_inline]] float greatest() const { return vmaxnmvq_f32(vmaxnmq_f32(low, high)); }

  [[gnu::always_inline]] void store_codes(int16_t* p) const {
    const int16x8_t codes =
        vcombine_s16(vmovn_s32(vcvtnq_s32_f32(low)), vmovn_s32(vcvtnq_s32_f32(high)));
    // Swaps the middle two of each four.
    const uint8x16_t order = {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};
    vst1q_s16(p, vreinterpretq_s16_u8(vqtbl1q_u8(vreinterpretq_u8_s16(codes), order)));
  }

  [[gnu::always_inline]] void store_halves(uint16_t* p) const {
    const auto half = [](float32x4_t x) __attribute__((always_inline)) {
      const float32x4_t most = vdupq_n_f32(65504.0f);
      return vreinterpret_u16_f16(vcvt_f16_f32(vmaxq_f32(vnegq_f32(most), vminq_f32(most, x))));
    };
    vst1_u16(p, half(low));
    vst1_u16(p + 4, half(high));
  }

  [[gnu::always_inline]] static Words load_words(const std::byte* p) {
    const auto* words = reinterpret_cast<const uint8_t*>(p);
    return {{vreinterpretq_u32_u8(vld1q_u8(words)), vreinterpretq_u32_u8(vld1q_u8(words + 16))}};
  }
  template <int kBits, int kShift>
  [[gnu::always_inline]] static NeonVec field(Words w) {
    return {field<kBits, kShift>(w.val[0]), field<kBits, kShift>(w.val[1])};
  }
  template <int kHalf>
  [[gnu::always_inline]] static Words doubled_e2m1(Words w) {
    return {{doubled_e2m1<kHalf>(w.val[0]), doubled_e2m1<kHalf>(w.val[1])}};
  }
  template <int kByte>
  [[gnu::always_inline]] static NeonVec signed_byte(Words w) {
    return {signed_byte<kByte>(w.val[0]), signed_byte<kByte>(w.val[1])};
  }
  template <int kByte>
  [[gnu::always_inline]] static NeonVec e4m3(Words w) {
    return {top_e4m3(shifted_up<kByte>(w.val[0])), top_e4m3(shifted_up<kByte>(w.val[1]))};
  }
  [[gnu::always_inline]] static NeonVec low_bf16(Words w) {
    return {vreinterpretq_f32_u32(vshlq_n_u32(w.val[0], 16)),
            vreinterpretq_f32_u32(vshlq_n_u32(w.val[1], 16))};
  }
  [[gnu::always_inline]] static NeonVec high_bf16(Words w) {
    const uint32x4_t mask = vdupq_n_u32(0xffff0000u);
    return {vreinterpretq_f32_u32(vandq_u32(w.val[0], mask)),
            vreinterpretq_f32_u32(vandq_u32(w.val[1], mask))};
  }
  /// Scales in bytes: E4M3 or powers of two.
  [[gnu::always_inline]] static NeonVec load_scales(const std::byte* p, ScalarType type) {
    return load_bytes(vmovl_u8(vld1_u8(reinterpret_cast<const uint8_t*>(p))), type);
  }
  /// Numbers of 32 or 16 bits.
  [[gnu::always_inline]] static NeonVec load(const std::byte* p, ScalarType type) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(p);
    const uint8x16_t first = vld1q_u8(bytes);
    if (type == ScalarType::kF32) {
      return {vreinterpretq_f32_u8(first), vreinterpretq_f32_u8(vld1q_u8(bytes + 16))};
    }
    const uint16x8_t halves = vreinterpretq_u16_u8(first);
    if (type == ScalarType::kF16) {
      const float16x8_t values = vreinterpretq_f16_u16(halves);
      return {vcvt_f32_f16(vget_low_f16(values)), vcvt_high_f32_f16(values)};
    }
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(halves), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(halves, 16))};
  }

 private:
  [[gnu::always_inline]] static NeonVec load_bytes(uint16x8_t bytes, ScalarType type) {
    const uint32x4_t first = vmovl_u16(vget_low_u16(bytes)), last = vmovl_high_u16(bytes);
    if (type == ScalarType::kE4m3)
      return {top_e4m3(shifted_up<0>(first)), top_e4m3(shifted_up<0>(last))};
    return {vreinterpretq_f32_u32(vshlq_n_u32(first, 23)),
            vreinterpretq_f32_u32(vshlq_n_u32(last, 23))};
  }
  template <int kHalf>
  [[gnu::always_inline]] static uint32x4_t doubled_e2m1(uint32x4_t w) {
    uint8x16_t codes = vreinterpretq_u8_u32(w);
    if constexpr (kHalf == 0)
      codes = vandq_u8(codes, vdupq_n_u8(15));
    else
      codes = vshrq_n_u8(codes, 4);
    return vreinterpretq_u32_s8(vqtbl1q_s8(vld1q_s8(kDoubledE2m1), codes));
  }
  /// Byte kByte of each word as its highest.
  template <int kByte>
  [[gnu::always_inline]] static uint32x4_t shifted_up(uint32x4_t w) {
    if constexpr (kByte == 3) return w;
    return vshlq_n_u32(w, 24 - 8 * kByte);
  }
  template <int kByte>
  [[gnu::always_inline]] static float32x4_t signed_byte(uint32x4_t w) {
    return vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_u32(shifted_up<kByte>(w)), 24));
  }
  /// Of the E4M3 code in the highest byte of each word, whatever the others hold.
  [[gnu::always_inline]] static float32x4_t top_e4m3(uint32x4_t w) {
    const uint32x4_t rest = vandq_u32(vshrq_n_u32(w, 4), vdupq_n_u32(0x07f00000u));
    const float32x4_t magnitude = vmulq_n_f32(vreinterpretq_f32_u32(rest), 0x1p120f);
    const uint32x4_t sign = vandq_u32(w, vdupq_n_u32(0x80000000u));
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(magnitude), sign));
  }
  [[gnu::always_inline]] static float32x4_t power_of_two(float32x4_t exponent) {
    const int32x4_t biased = vaddq_s32(vcvtq_s32_f32(exponent), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
  }
  template <int kBits, int kShift>
  [[gnu::always_inline]] static float32x4_t field(uint32x4_t w) {
    if constexpr (kShift + kBits == 32) return vcvtq_f32_u32(vshrq_n_u32(w, kShift));
    if constexpr (kShift > 0) w = vshrq_n_u32(w, kShift);
    return vcvtq_f32_u32(vandq_u32(w, vdupq_n_u32((1u << kBits) - 1)));
  }
};

/// The same members as PortableVec::Ints (see there). Sums keep the two products of a lane apart
/// until they become floats.
struct NeonVec::Ints {
  static constexpr int kTileRows = 3;

  int32x4_t v[4];  // two 16-bit codes a lane: the first two only

  [[gnu::always_inline]] static Ints zero() {
    const int32x4_t none = vdupq_n_s32(0);
    return {{none, none, none, none}};
  }
  [[gnu::always_inline]] static Ints pair(const int16_t* p) {
    int32_t both;
    std::memcpy(&both, p, sizeof(both));
    return {{vdupq_n_s32(both)}};
  }
  template <int kBits, int kPair>
  [[gnu::always_inline]] static Ints codes(Words w) {
    return {{codes<kBits, kPair>(w.val[0]), codes<kBits, kPair>(w.val[1])}};
  }
  template <int kPair>
  [[gnu::always_inline]] static Ints signed_bytes(Words w) {
    return {{signed_bytes<kPair>(w.val[0]), signed_bytes<kPair>(w.val[1])}};
  }
  /// a: codes of a step, b: a pair.
  [[gnu::always_inline]] static Ints dot(Ints sum, Ints a, Ints b) {
    const int16x8_t x = vreinterpretq_s16_s32(b.v[0]);
    for (int i = 0; i < 2; ++i) {
      const int16x8_t weights = vreinterpretq_s16_s32(a.v[i]);
      sum.v[2 * i] = vmlal_s16(sum.v[2 * i], vget_low_s16(weights), vget_low_s16(x));
      sum.v[2 * i + 1] = vmlal_high_s16(sum.v[2 * i + 1], weights, x);
    }
    return sum;
  }
  [[gnu::always_inline]] NeonVec to_floats() const {
    return {vcvtq_f32_s32(vpaddq_s32(v[0], v[1])), vcvtq_f32_s32(vpaddq_s32(v[2], v[3]))};
  }

 private:
  template <int kPair>
  [[gnu::always_inline]] static int32x4_t signed_bytes(uint32x4_t w) {
    int16x8_t halves = vreinterpretq_s16_u32(w);
    if constexpr (kPair == 0) halves = vshlq_n_s16(halves, 8);
    return vreinterpretq_s32_s16(vshrq_n_s16(halves, 8));
  }
  template <int kBits, int kPair>
  [[gnu::always_inline]] static int32x4_t codes(uint32x4_t w) {
    constexpr int kShift = kPair / 2 * kBits + kPair % 2 * 8;
    uint16x8_t halves = vreinterpretq_u16_u32(w);
    if constexpr (kShift > 0) halves = vshrq_n_u16(halves, kShift);
    if constexpr (kShift + kBits < 16) halves = vandq_u16(halves, vdupq_n_u16((1 << kBits) - 1));
    return vreinterpretq_s32_u16(halves);
  }
};

}  // namespace tandem::kernels
