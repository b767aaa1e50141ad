// Attention of a chunk's queries over one span of keys on AMX tiles. Only for files compiled with
// the instruction sets of CpuLevel::kAmx.
#pragma once

#include <immintrin.h>

#include <cstring>
#include <limits>

#include "kernels/amx_tiles.h"
#include "kernels/attention_block.h"
#include "kernels/attention_scores.h"
#include "kernels/simd_avx512.h"
#include "kernels/vec_math.h"
#include "kernels/with_count.h"

namespace tandem::kernels {

/// A line of a tile, twice: bf16 numbers of which each high and low one together are a float. A
/// float16 is their sum exactly, a float32 to 16 bits.
struct Bf16Lines {
  __m512i high, low;

  /// Lanes of `even` and `odd` by turns.
  [[gnu::always_inline]] static Bf16Lines of(Avx512Vec even, Avx512Vec odd) {
    const __m512i first = rounded(even.v), second = rounded(odd.v);
    return {join(first, second), join(rounded(rest(even, first)), rounded(rest(odd, second)))};
  }

  [[gnu::always_inline]] void store(std::byte* to) const {
    _mm512_storeu_si512(to, high);
    _mm512_storeu_si512(to + kTileBytes, low);
  }

 private:
  /// The nearest bf16 in the upper half of each lane; the lower one is of no meaning.
  [[gnu::always_inline]] static __m512i rounded(__m512 x) {
    return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  }
  [[gnu::always_inline]] static __m512 rest(Avx512Vec x, __m512i rounded) {
    const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return _mm512_sub_ps(x.v, _mm512_castsi512_ps(_mm512_and_si512(rounded, mask)));
  }
  [[gnu::always_inline]] static __m512i join(__m512i even, __m512i odd) {
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(even, 16), odd);
  }
};

/// Memory for the span: operands as pairs of tiles, the high one first. Columns of a product meet
/// in any order, as long as both sides have the same: tiles hold columns c and c + 16 side by side.
struct TileScratch {
  static constexpr size_t kQueries = 192;  // most queries of a span
  static constexpr size_t kKeys = AttentionSpan::kSpanKeys;
  static constexpr size_t kDepth = 32;  // columns that a pair of tiles holds
  static constexpr size_t kPair = 2 * kTileBytes;

  size_t depths = 0;  // pairs of tiles that hold a key's dimensions as columns
  size_t widths = 0;  // tiles that hold a value's as outputs

  std::byte* queries = nullptr;  // [kQueries / 16, depths] pairs
  std::byte* keys = nullptr;     // [kKeys / 16, depths] pairs
  std::byte* values = nullptr;   // [widths, kKeys / 32] pairs
  std::byte* weights = nullptr;  // [kKeys / 32] pairs, of 16 queries
  float* scores = nullptr;       // [16, kKeys]
  float* sums = nullptr;         // [16, widths * 16]

  [[gnu::always_inline]] static size_t bytes(size_t head_dim, size_t value_dim) {
    const TileScratch out(head_dim, value_dim);
    return (kQueries + kKeys) / kTileRows * out.depths * kPair +
           (out.widths + 1) * (kKeys / kDepth) * kPair + kTileRows * kKeys * sizeof(float) +
           out.widths * kTileBytes;
  }
  [[gnu::always_inline]] static TileScratch at(std::byte* memory,
                                               size_t head_dim,
                                               size_t value_dim) {
    TileScratch out(head_dim, value_dim);
    out.queries = memory;
    out.keys = out.queries + kQueries / kTileRows * out.depths * kPair;
    out.values = out.keys + kKeys / kTileRows * out.depths * kPair;
    out.weights = out.values + out.widths * (kKeys / kDepth) * kPair;
    std::byte* scores = out.weights + kKeys / kDepth * kPair;
    std::byte* sums = scores + kTileRows * kKeys * sizeof(float);
    out.scores = reinterpret_cast<float*>(scores);
    out.sums = reinterpret_cast<float*>(sums);
    return out;
  }

 private:
  [[gnu::always_inline]] TileScratch(size_t head_dim, size_t value_dim)
      : depths((head_dim + kDepth - 1) / kDepth), widths((value_dim + kTileRows - 1) / kTileRows) {}
};

/// 2^x, relative error below 1e-6 for x <= 0; 0 below -126.5 and for -infinity, NaN for NaN: for
/// weights that keep 16 bits.
template <class V>
[[gnu::always_inline]] inline V weight_exp2(V x) {
  const V clamped = V::max(V::all(-127.0f), x);
  const V shift = V::all(12582912.0f);  // 1.5 * 2^23: a sum with it has no fraction
  const V shifted = clamped + shift;
  const V r = clamped - (shifted - shift);
  V p = V::all(1.3333558e-3f);
  p = V::fma(p, r, V::all(9.6181291e-3f));
  p = V::fma(p, r, V::all(5.5504109e-2f));
  p = V::fma(p, r, V::all(0.24022651f));
  p = V::fma(p, r, V::all(0.69314718f));
  p = V::fma(p, r, V::all(1.0f));
  const __m512i biased = _mm512_add_epi32(_mm512_castps_si512(shifted.v), _mm512_set1_epi32(127));
  return p * V{_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
}

/// The span's keys and values become tiles once; then sixteen queries at a time meet all its keys
/// they see: scores, weights, sums. A product of floats is three of bf16: high with high, low with
/// high, high with low.
template <class V>
class TileAttention {
 public:
  TileAttention(const AttentionSpan& span, const SpanState& state, const TileScratch& scratch)
      : span_(span),
        state_(state),
        scratch_(scratch),
        dim_(span.args->head_dim),
        value_dim_(span.args->value_dim),
        seen_(seen_by(span.position(0), span.position(span.queries() - 1))) {}

  void run() {
    const TileScope tiles(TileShapes::full());
    pack_queries();
    pack_keys();
    pack_values();
    for (size_t q = 0; q < span_.queries(); q += kTileRows) attend(q);
  }

 private:
  using Block = PoolBlock<V, ScalarType::kF16>;
  static constexpr size_t kKeys = TileScratch::kKeys;
  static constexpr size_t kDepth = TileScratch::kDepth;
  static constexpr size_t kPair = TileScratch::kPair;
  static constexpr size_t kLanes = V::kLanes;
  static constexpr float kNothing = -std::numeric_limits<float>::infinity();

  /// Keys of the span.
  struct Seen : SeenKeys {
    size_t first_step() const { return low / kDepth; }
    size_t end_step() const { return (high + kDepth - 1) / kDepth; }
  };

  /// Those that some query between two positions sees.
  Seen seen_by(size_t first_position, size_t last_position) const {
    return {span_.seen_keys(first_position, last_position, span_.key_begin, kKeys)};
  }

  void pack_queries() {
    const AttentionArgs& args = *span_.args;
    const V factor = V::all(span_.query_factor());
    for (size_t q = 0; q < span_.queries(); ++q) {
      const float* from = args.q + span_.token(q) * args.q_stride + span_.head(q) * dim_;
      std::byte* to =
          scratch_.queries + q / kTileRows * scratch_.depths * kPair + q % kTileRows * kTileLine;
      for (size_t i = 0; i < dim_; i += kDepth, to += kPair)
        Bf16Lines::of(part(from, i) * factor, part(from, i + kLanes) * factor).store(to);
    }
  }

  /// Dimensions from i on, zeros after the last.
  [[gnu::always_inline]] V part(const float* x, size_t i) const {
    if (i + kLanes <= dim_) return V::load(x + i);
    return i < dim_ ? V::load(x + i, dim_ - i) : V::zero();
  }

  void pack_keys() {
    const Block block{
        .span = span_, .begin = span_.key_begin, .low = seen_.low, .high = seen_.high};
    if (block.is_latent()) return pack_key_rows(block);
    const size_t stride = block.page_tokens() * Block::kBytes;
    for (size_t j = seen_.low / kLanes * kLanes; j < seen_.high; j += kLanes) {
      const std::byte* from = block.key_at(span_.key_begin + j);
      std::byte* to = scratch_.keys + j / kTileRows * scratch_.depths * kPair;
      const auto load = [&](size_t i) {
        return i < dim_ ? V::load(from + i * stride, ScalarType::kF16) : V::zero();
      };
      for (size_t i = 0; i < dim_; i += kDepth, to += kPair)
        for (size_t r = 0; r < kTileRows; ++r)
          Bf16Lines::of(load(i + r), load(i + r + kTileRows)).store(to + r * kTileLine);
    }
  }

  void pack_key_rows(const Block& block) {
    for (size_t j = seen_.low / kLanes * kLanes; j < seen_.high; j += kLanes) {
      const std::byte* from[kLanes];
      block.find_key_rows(j, from);
      std::byte* to = scratch_.keys + j / kTileRows * scratch_.depths * kPair;
      for (size_t i = 0; i < dim_; i += kDepth, to += kPair) {
        V even[kLanes], odd[kLanes];
        load_keys(from, i, even);
        load_keys(from, i + kLanes, odd);
        for (size_t r = 0; r < kTileRows; ++r)
          Bf16Lines::of(even[r], odd[r]).store(to + r * kTileLine);
      }
    }
  }

  /// Dimensions from i on of some keys, zeros after the last.
  [[gnu::always_inline]] void load_keys(const std::byte* const (&from)[kLanes],
                                        size_t i,
                                        V (&square)[kLanes]) const {
    for (size_t r = 0; r < kLanes; ++r) square[r] = part(from[r], i, dim_);
    transpose(square);
  }

  /// Slots that nobody sees may hold anything and count as zeros.
  void pack_values() {
    const Block block{.span = span_};
    for (size_t step = seen_.first_step(); step < seen_.end_step(); ++step) {
      for (size_t r = 0; r < kTileRows; ++r) {
        const size_t even = step * kDepth + r, odd = even + kTileRows;
        const std::byte* first = is_seen(even) ? block.value_at(span_.key_begin + even) : nullptr;
        const std::byte* second = is_seen(odd) ? block.value_at(span_.key_begin + odd) : nullptr;
        std::byte* to = scratch_.values + step * kPair + r * kTileLine;
        for (size_t i = 0; i < value_dim_; i += kLanes, to += kKeys / kDepth * kPair)
          Bf16Lines::of(part(first, i, value_dim_), part(second, i, value_dim_)).store(to);
      }
    }
  }

  bool is_seen(size_t key) const { return key >= seen_.low && key < seen_.high; }

  /// Dimensions from i on of `dims`, zeros after the last, or where there is no row.
  [[gnu::always_inline]] static V part(const std::byte* row, size_t i, size_t dims) {
    if (row == nullptr || i >= dims) return V::zero();
    const std::byte* from = row + i * Block::kBytes;
    if (i + kLanes <= dims) return V::load(from, ScalarType::kF16);
    uint16_t halves[kLanes] = {};
    std::memcpy(halves, from, (dims - i) * Block::kBytes);
    return V::load(reinterpret_cast<const std::byte*>(halves), ScalarType::kF16);
  }

  /// Sixteen queries from `q` on, of which the last ones may not exist.
  void attend(size_t q) {
    const size_t left = span_.queries() - q, count = left < kTileRows ? left : kTileRows;
    const Seen seen = seen_by(span_.position(q), span_.position(q + count - 1));
    score(q, seen);
    for (size_t r = 0; r < count; ++r) weigh(q + r, r, seen);
    sum(q, count, seen);
  }

  void score(size_t q, const Seen& seen) {
    const std::byte* a = scratch_.queries + q / kTileRows * scratch_.depths * kPair;
    const size_t stride = scratch_.depths * kPair, end = 2 * seen.end_step();
    for (size_t tile = 2 * seen.first_step(); tile < end; tile += 4) {
      const std::byte* b = scratch_.keys + tile * stride;
      float* to = scratch_.scores + tile * kTileRows;
      if (tile + 4 <= end) {
        multiply<4>(a, b, stride, scratch_.depths, to, kKeys);
      } else {
        multiply<2>(a, b, stride, scratch_.depths, to, kKeys);
      }
    }
  }

  void sum(size_t q, size_t count, const Seen& seen) {
    const size_t width = scratch_.widths * kTileRows, steps = seen.end_step() - seen.first_step();
    float* values = state_.values + q * width;
    float* to = count == kTileRows ? values : scratch_.sums;
    const std::byte* a = scratch_.weights + seen.first_step() * kPair;
    const size_t stride = kKeys / kDepth * kPair;
    for (size_t tile = 0; tile < scratch_.widths; tile += 4) {
      const std::byte* b = scratch_.values + tile * stride + seen.first_step() * kPair;
      const size_t tiles = scratch_.widths - tile < 4 ? scratch_.widths - tile : 4;
      with_count<4>(tiles, [&](auto n) {
        multiply<decltype(n)::value>(a, b, stride, steps, to + tile * kTileRows, width);
      });
    }
    if (to != values) std::memcpy(values, to, count * width * sizeof(float));
  }

  /// to [16, 16 kTiles] = a b over pairs of tiles: those of a row of b lie side by side, its rows
  /// `b_stride` bytes apart.
  template <int kTiles>
  [[gnu::always_inline]] static void multiply(const std::byte* a,
                                              const std::byte* b,
                                              size_t b_stride,
                                              size_t steps,
                                              float* to,
                                              size_t to_stride) {
    zero_tile<0>();
    if constexpr (kTiles > 1) zero_tile<1>();
    if constexpr (kTiles > 2) zero_tile<2>();
    if constexpr (kTiles > 3) zero_tile<3>();
    for (size_t step = 0; step < steps; ++step, a += kPair, b += kPair) {
      load_tile<4>(a);
      load_tile<5>(a + kTileBytes);
      add_step<0, (kTiles > 1)>(b, b_stride);
      if constexpr (kTiles > 2) add_step<2, (kTiles > 3)>(b + 2 * b_stride, b_stride);
    }
    to_stride *= sizeof(float);
    store_tile<0>(to, to_stride);
    if constexpr (kTiles > 1) store_tile<1>(to + kTileRows, to_stride);
    if constexpr (kTiles > 2) store_tile<2>(to + 2 * kTileRows, to_stride);
    if constexpr (kTiles > 3) store_tile<3>(to + 3 * kTileRows, to_stride);
  }

  /// Tiles kSum and, for two, the next: their products take turns, since each waits for the sum.
  template <int kSum, bool kTwo>
  [[gnu::always_inline]] static void add_step(const std::byte* b, size_t b_stride) {
    load_tile<6>(b);
    if constexpr (kTwo) load_tile<7>(b + b_stride);
    add_bf16_products<kSum, 4, 6>();
    if constexpr (kTwo) add_bf16_products<kSum + 1, 4, 7>();
    add_bf16_products<kSum, 5, 6>();
    if constexpr (kTwo) add_bf16_products<kSum + 1, 5, 7>();
    load_tile<6>(b + kTileBytes);
    if constexpr (kTwo) load_tile<7>(b + b_stride + kTileBytes);
    add_bf16_products<kSum, 4, 6>();
    if constexpr (kTwo) add_bf16_products<kSum + 1, 4, 7>();
  }

  /// Turns a query's scores into weights, row r of their tiles.
  void weigh(size_t q, size_t r, const Seen& seen) {
    float* s = scratch_.scores + r * kKeys;
    const size_t first = seen.first_step() * kDepth, end = seen.end_step() * kDepth;
    cap_scores<V>(s + first, s + end, span_.args->softcap);
    const Seen own = seen_by(span_.position(q), span_.position(q));
    hide(s, first, own.low);
    hide(s, own.high, end);
    V most = V::all(kNothing), other = most;
    for (size_t j = first; j < end; j += kDepth) {
      most = V::max(most, V::load(s + j));
      other = V::max(other, V::load(s + j + kLanes));
    }
    const float greatest = V::max(most, other).greatest();
    state_.greatest[q] = greatest;
    // A query that sees no key has weights 0, whatever stands in for its greatest score.
    const V base = V::all(greatest == kNothing ? 0.0f : greatest);
    V total = V::zero(), other_total = total;
    std::byte* to = scratch_.weights + seen.first_step() * kPair + r * kTileLine;
    for (size_t j = first; j < end; j += kDepth, to += kPair) {
      const V even = weight_exp2(V::load(s + j) - base);
      const V odd = weight_exp2(V::load(s + j + kLanes) - base);
      total = total + even;
      other_total = other_total + odd;
      Bf16Lines::of(even, odd).store(to);
    }
    state_.total[q] = (total + other_total).sum();
  }

  /// Scores of keys [begin, end) become -infinity.
  [[gnu::always_inline]] static void hide(float* s, size_t begin, size_t end) {
    for (size_t j = begin; j < end;) {
      const size_t left = end - j, n = left < kLanes ? left : kLanes;
      V::all(kNothing).store(s + j, n);
      j += n;
    }
  }

  const AttentionSpan& span_;
  const SpanState& state_;
  const TileScratch& scratch_;
  const size_t dim_, value_dim_;
  const Seen seen_;
};

}  // namespace tandem::kernels
