// Avx512Vec: sixteen floats in an AVX-512 register. Only for files compiled with the instruction
// sets of CpuLevel::kAvx512.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/scalar_type.h"

namespace tandem::kernels {

/// The same members as PortableVec (see there).
struct Avx512Vec {
  using Words = __m512i;
  static constexpr size_t kLanes = 16;
  static constexpr int kTileRows = 12;
  struct Ints;

  __m512 v;

  [[gnu::always_inline]] static Avx512Vec zero() { return {_mm512_setzero_ps()}; }
  [[gnu::always_inline]] static Avx512Vec all(float x) { return {_mm512_set1_ps(x)}; }
  [[gnu::always_inline]] static Avx512Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  [[gnu::always_inline]] void store(float* p) const { _mm512_storeu_ps(p, v); }
  [[gnu::always_inline]] static Avx512Vec load(const float* p, size_t n) {
    return {_mm512_maskz_loadu_ps(first_lanes(n), p)};
  }
  [[gnu::always_inline]] void store(float* p, size_t n) const {
    _mm512_mask_storeu_ps(p, first_lanes(n), v);
  }

  friend Avx512Vec operator+(Avx512Vec a, Avx512Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Avx512Vec operator-(Avx512Vec a, Avx512Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Avx512Vec operator*(Avx512Vec a, Avx512Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Avx512Vec operator/(Avx512Vec a, Avx512Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
  [[gnu::always_inline]] static Avx512Vec fma(Avx512Vec a, Avx512Vec b, Avx512Vec c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }
  [[gnu::always_inline]] static Avx512Vec min(Avx512Vec limit, Avx512Vec x) {
    return {_mm512_min_ps(limit.v, x.v)};
  }
  [[gnu::always_inline]] static Avx512Vec max(Avx512Vec limit, Avx512Vec x) {
    return {_mm512_max_ps(limit.v, x.v)};
  }
  [[gnu::always_inline]] static Avx512Vec select_less(Avx512Vec a,
                                                      Avx512Vec b,
                                                      Avx512Vec yes,
                                                      Avx512Vec no) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
  }
  [[gnu::always_inline]] Avx512Vec absolute() const { return {_mm512_abs_ps(v)}; }
  [[gnu::always_inline]] Avx512Vec rounded() const {
    return {_mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  [[gnu::always_inline]] Avx512Vec power_of_two() const {
    const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
  }
  [[gnu::always_inline]] static Avx512Vec zip_low(Avx512Vec a, Avx512Vec b) {
    const __m512i order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return {_mm512_permutex2var_ps(a.v, order, b.v)};
  }
  [[gnu::always_inline]] static Avx512Vec zip_high(Avx512Vec a, Avx512Vec b) {
    const __m512i order =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return {_mm512_permutex2var_ps(a.v, order, b.v)};
  }

  /// Sums in one fixed tree: lanes i and i + 8, then as eight lanes do.
  [[gnu::always_inline]] float sum() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  [[gnu::always_inline]] float greatest() const {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  [[gnu::always_inline]] void store_codes(int16_t* p) const {
    const __m256i packed = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(v));
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_shuffle_epi8(packed, order));
  }

  [[gnu::always_inline]] static Words load_words(const std::byte* p) {
    return _mm512_loadu_si512(p);
  }
  template <int kBits, int kShift>
  [[gnu::always_inline]] static Avx512Vec field(Words w) {
    const __m512i mask = _mm512_set1_epi32((1 << kBits) - 1);
    return {_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(w, kShift), mask))};
  }
  /// Words of four signed bytes, of words whose bytes are codes.
  [[gnu::always_inline]] static Words doubled_e2m1(Words codes) {
    const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kDoubledE2m1));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), codes);
  }
  template <int kHalf>
  [[gnu::always_inline]] static Words doubled_e2m1(Words w) {
    const __m512i mask = _mm512_set1_epi8(15);
    return doubled_e2m1(_mm512_and_si512(_mm512_srli_epi32(w, 4 * kHalf), mask));
  }
  template <int kByte>
  [[gnu::always_inline]] static Avx512Vec signed_byte(Words w) {
    return {_mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(w, 24 - 8 * kByte), 24))};
  }
  template <int kByte>
  [[gnu::always_inline]] static Avx512Vec e4m3(Words w) {
    return top_e4m3(_mm512_slli_epi32(w, 24 - 8 * kByte));
  }
  [[gnu::always_inline]] static Avx512Vec low_bf16(Words w) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(w, 16))};
  }
  [[gnu::always_inline]] static Avx512Vec high_bf16(Words w) {
    const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm512_castsi512_ps(_mm512_and_si512(w, mask))};
  }
  /// Scales in bytes: E4M3 or powers of two.
  [[gnu::always_inline]] static Avx512Vec load_scales(const std::byte* p, ScalarType type) {
    const __m512i bytes =
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    if (type == ScalarType::kE4m3) return top_e4m3(_mm512_slli_epi32(bytes, 24));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(bytes, 23))};
  }
  /// Numbers of 32 or 16 bits.
  [[gnu::always_inline]] static Avx512Vec load(const std::byte* p, ScalarType type) {
    if (type == ScalarType::kF32) return load(reinterpret_cast<const float*>(p));
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    if (type == ScalarType::kF16) return {_mm512_cvtph_ps(halves)};
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
  }
  [[gnu::always_inline]] void store_halves(uint16_t* p) const {
    const __m512 most = _mm512_set1_ps(65504.0f);
    const __m512 clamped =
        _mm512_max_ps(_mm512_sub_ps(_mm512_setzero_ps(), most), _mm512_min_ps(most, v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(clamped, _MM_FROUND_TO_NEAREST_INT));
  }

 private:
  /// Of the E4M3 code in the highest byte of each word, whatever the others hold.
  [[gnu::always_inline]] static Avx512Vec top_e4m3(Words w) {
    const __m512i rest = _mm512_and_si512(_mm512_srli_epi32(w, 4), _mm512_set1_epi32(0x07f00000));
    const auto magnitude = _mm512_mul_ps(_mm512_castsi512_ps(rest), _mm512_set1_ps(0x1p120f));
    const __m512i sign = _mm512_and_si512(w, _mm512_set1_epi32(INT32_MIN));
    return {_mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(magnitude), sign))};
  }
  [[gnu::always_inline]] static __mmask16 first_lanes(size_t n) {
    return static_cast<__mmask16>((1u << n) - 1);
  }
};

/// The same members as PortableVec::Ints (see there).
struct Avx512Vec::Ints {
  static constexpr int kTileRows = 8;

  __m512i v;

  [[gnu::always_inline]] static Ints zero() { return {_mm512_setzero_si512()}; }
  [[gnu::always_inline]] static Ints pair(const int16_t* p) {
    int32_t both;
    std::memcpy(&both, p, sizeof(both));
    return {_mm512_set1_epi32(both)};
  }
  template <int kBits, int kPair>
  [[gnu::always_inline]] static Ints codes(Words w) {
    constexpr int kShift = kPair / 2 * kBits + kPair % 2 * 8;
    const __m512i mask = _mm512_set1_epi16((1 << kBits) - 1);
    if constexpr (kShift + kBits == 16) return {_mm512_srli_epi16(w, kShift)};
    if constexpr (kShift == 0) return {_mm512_and_si512(w, mask)};
    return {_mm512_and_si512(_mm512_srli_epi16(w, kShift), mask)};
  }
  template <int kPair>
  [[gnu::always_inline]] static Ints signed_bytes(Words w) {
    return {_mm512_srai_epi16(kPair == 0 ? _mm512_slli_epi16(w, 8) : w, 8)};
  }
  [[gnu::always_inline]] static Ints dot(Ints sum, Ints a, Ints b) {
    return {_mm512_dpwssd_epi32(sum.v, a.v, b.v)};
  }
  [[gnu::always_inline]] Avx512Vec to_floats() const { return {_mm512_cvtepi32_ps(v)}; }
};

}  // namespace tandem::kernels
