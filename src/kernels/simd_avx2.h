// Avx2Vec: eight floats in an AVX register. Only for files compiled with -mavx2 -mfma -mf16c.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/scalar_type.h"

namespace tandem::kernels {

/// The same members as PortableVec (see there).
struct Avx2Vec {
  using Words = __m256i;
  static constexpr size_t kLanes = 8;
  static constexpr int kTileRows = 6;
  struct Ints;

  __m256 v;

  [[gnu::always_inline]] static Avx2Vec zero() { return {_mm256_setzero_ps()}; }
  [[gnu::always_inline]] static Avx2Vec all(float x) { return {_mm256_set1_ps(x)}; }
  [[gnu::always_inline]] static Avx2Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
  [[gnu::always_inline]] void store(float* p) const { _mm256_storeu_ps(p, v); }
  [[gnu::always_inline]] static Avx2Vec load(const float* p, size_t n) {
    return {_mm256_maskload_ps(p, first_lanes(n))};
  }
  [[gnu::always_inline]] void store(float* p, size_t n) const {
    _mm256_maskstore_ps(p, first_lanes(n), v);
  }

  friend Avx2Vec operator+(Avx2Vec a, Avx2Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Avx2Vec operator-(Avx2Vec a, Avx2Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend Avx2Vec operator*(Avx2Vec a, Avx2Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend Avx2Vec operator/(Avx2Vec a, Avx2Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
  [[gnu::always_inline]] static Avx2Vec fma(Avx2Vec a, Avx2Vec b, Avx2Vec c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
  }
  [[gnu::always_inline]] static Avx2Vec min(Avx2Vec limit, Avx2Vec x) {
    return {_mm256_min_ps(limit.v, x.v)};
  }
  [[gnu::always_inline]] static Avx2Vec max(Avx2Vec limit, Avx2Vec x) {
    return {_mm256_max_ps(limit.v, x.v)};
  }
  [[gnu::always_inline]] static Avx2Vec select_less(Avx2Vec a, Avx2Vec b, Avx2Vec yes, Avx2Vec no) {
    return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ))};
  }
  [[gnu::always_inline]] Avx2Vec absolute() const {
    return {_mm256_and_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)))};
  }
  [[gnu::always_inline]] Avx2Vec rounded() const {
    return {_mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  [[gnu::always_inline]] Avx2Vec power_of_two() const {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(127));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23))};
  }
  [[gnu::always_inline]] static Avx2Vec zip_low(Avx2Vec a, Avx2Vec b) {
    const __m256 first = _mm256_unpacklo_ps(a.v, b.v), second = _mm256_unpackhi_ps(a.v, b.v);
    return {_mm256_permute2f128_ps(first, second, 0x20)};
  }
  [[gnu::always_inline]] static Avx2Vec zip_high(Avx2Vec a, Avx2Vec b) {
    const __m256 first = _mm256_unpacklo_ps(a.v, b.v), second = _mm256_unpackhi_ps(a.v, b.v);
    return {_mm256_permute2f128_ps(first, second, 0x31)};
  }

  [[gnu::always_inline]] float sum() const {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  [[gnu::always_inline]] float greatest() const {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  [[gnu::always_inline]] void store_codes(int16_t* p) const {
    const __m256i ints = _mm256_cvtps_epi32(v);
    const __m128i packed =
        _mm_packs_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
    const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_shuffle_epi8(packed, order));
  }

  [[gnu::always_inline]] static Words load_words(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  template <int kBits, int kShift>
  [[gnu::always_inline]] static Avx2Vec field(Words w) {
    const __m256i mask = _mm256_set1_epi32((1 << kBits) - 1);
    return {_mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(w, kShift), mask))};
  }
  /// Words of four signed bytes, of words whose bytes are codes.
  [[gnu::always_inline]] static Words doubled_e2m1(Words codes) {
    const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kDoubledE2m1));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes);
  }
  template <int kHalf>
  [[gnu::always_inline]] static Words doubled_e2m1(Words w) {
    const __m256i mask = _mm256_set1_epi8(15);
    return doubled_e2m1(_mm256_and_si256(_mm256_srli_epi32(w, 4 * kHalf), mask));
  }
  template <int kByte>
  [[gnu::always_inline]] static Avx2Vec signed_byte(Words w) {
    return {_mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(w, 24 - 8 * kByte), 24))};
  }
  template <int kByte>
  [[gnu::always_inline]] static Avx2Vec e4m3(Words w) {
    return top_e4m3(_mm256_slli_epi32(w, 24 - 8 * kByte));
  }
  [[gnu::always_inline]] static Avx2Vec low_bf16(Words w) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(w, 16))};
  }
  [[gnu::always_inline]] static Avx2Vec high_bf16(Words w) {
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm256_castsi256_ps(_mm256_and_si256(w, mask))};
  }
  /// Scales in bytes: E4M3 or powers of two.
  [[gnu::always_inline]] static Avx2Vec load_scales(const std::byte* p, ScalarType type) {
    const __m256i bytes =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    if (type == ScalarType::kE4m3) return top_e4m3(_mm256_slli_epi32(bytes, 24));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(bytes, 23))};
  }
  /// Numbers of 32 or 16 bits.
  [[gnu::always_inline]] static Avx2Vec load(const std::byte* p, ScalarType type) {
    if (type == ScalarType::kF32) return load(reinterpret_cast<const float*>(p));
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    if (type == ScalarType::kF16) return {_mm256_cvtph_ps(halves)};
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))};
  }

  [[gnu::always_inline]] void store_halves(uint16_t* p) const {
    const __m256 most = _mm256_set1_ps(65504.0f);
    const __m256 clamped =
        _mm256_max_ps(_mm256_sub_ps(_mm256_setzero_ps(), most), _mm256_min_ps(most, v));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(clamped, _MM_FROUND_TO_NEAREST_INT));
  }

 private:
  /// Of the E4M3 code in the highest byte of each word, whatever the others hold.
  [[gnu::always_inline]] static Avx2Vec top_e4m3(Words w) {
    const __m256i rest = _mm256_and_si256(_mm256_srli_epi32(w, 4), _mm256_set1_epi32(0x07f00000));
    const auto magnitude = _mm256_mul_ps(_mm256_castsi256_ps(rest), _mm256_set1_ps(0x1p120f));
    const __m256i sign = _mm256_and_si256(w, _mm256_set1_epi32(INT32_MIN));
    return {_mm256_castsi256_ps(_mm256_or_si256(_mm256_castps_si256(magnitude), sign))};
  }
  [[gnu::always_inline]] static __m256i first_lanes(size_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
  }
};

/// The same members as PortableVec::Ints (see there).
struct Avx2Vec::Ints {
  static constexpr int kTileRows = 4;

  __m256i v;

  [[gnu::always_inline]] static Ints zero() { return {_mm256_setzero_si256()}; }
  [[gnu::always_inline]] static Ints pair(const int16_t* p) {
    int32_t both;
    std::memcpy(&both, p, sizeof(both));
    return {_mm256_set1_epi32(both)};
  }
  template <int kBits, int kPair>
  [[gnu::always_inline]] static Ints codes(Words w) {
    constexpr int kShift = kPair / 2 * kBits + kPair % 2 * 8;
    const __m256i mask = _mm256_set1_epi16((1 << kBits) - 1);
    if constexpr (kShift + kBits == 16) return {_mm256_srli_epi16(w, kShift)};
    if constexpr (kShift == 0) return {_mm256_and_si256(w, mask)};
    return {_mm256_and_si256(_mm256_srli_epi16(w, kShift), mask)};
  }
  template <int kPair>
  [[gnu::always_inline]] static Ints signed_bytes(Words w) {
    return {_mm256_srai_epi16(kPair == 0 ? _mm256_slli_epi16(w, 8) : w, 8)};
  }
  [[gnu::always_inline]] static Ints dot(Ints sum, Ints a, Ints b) {
    __m256i out = _mm256_add_epi32(sum.v, _mm256_madd_epi16(a.v, b.v));
    asm volatile("" : "+x"(out));  // in this order, or the compiler spills sums for products
    return {out};
  }
  [[gnu::always_inline]] Avx2Vec to_floats() const { return {_mm256_cvtepi32_ps(v)}; }
};

}  // namespace tandem::kernels
