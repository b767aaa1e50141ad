// Attention of a few queries over one span of keys, for any vector type.
#pragma once

#include <cstddef>
#include <limits>

#include "kernels/attention_span.h"
#include "kernels/vec_math.h"

namespace tandem::kernels {

template <class V>
[[gnu::always_inline]] inline float scalar_exp(float x) {
  float lanes[V::kLanes];
  vec_exp(V::all(x)).store(lanes);
  return lanes[0];
}

/// One block of keys against the queries of a span.
template <class V>
struct AttentionBlock {
  static constexpr size_t kKeys = AttentionSpan::kBlockKeys;
  static constexpr size_t kKeyVecs = kKeys / V::kLanes;

  const AttentionSpan& span;
  const SpanState& state;
  size_t begin = 0;            // position of the block's first key
  size_t low = 0, high = 0;    // keys [low, high) of the block are seen by some query
  float* keys = nullptr;       // [head_dim, kKeys]
  float* scores = nullptr;     // [queries, kKeys], later weights
  float* decay = nullptr;      // [queries]: what the values so far are multiplied by
  size_t offsets[kKeys] = {};  // of the keys in the pools

  size_t dim() const { return span.args->head_dim; }

  /// Fills offsets; keys that nobody sees repeat one that is seen.
  void find_keys() {
    const AttentionArgs& args = *span.args;
    const size_t width = args.kv_heads * args.head_dim;
    size_t page = (begin + low) / args.page_tokens;
    size_t slot = (begin + low) % args.page_tokens;
    for (size_t j = low; j < high; ++j, ++slot) {
      if (slot == args.page_tokens) {
        slot = 0;
        ++page;
      }
      const size_t row = span.row->pages[page] * args.page_tokens + slot;
      offsets[j] = row * width + span.kv_head * args.head_dim;
    }
    for (size_t j = 0; j < low; ++j) offsets[j] = offsets[low];
    for (size_t j = high; j < kKeys; ++j) offsets[j] = offsets[high - 1];
  }

  /// Lays the block's keys out by dimension.
  void transpose_keys() {
    const float* pool = span.args->k_pool;
    for (size_t j = 0; j < kKeys; j += V::kLanes) {
      size_t i = 0;
      for (; i + V::kLanes <= dim(); i += V::kLanes) {
        V rows[8];
#pragma GCC unroll 8
        for (size_t r = 0; r < 8; ++r) rows[r] = V::load(pool + offsets[j + r] + i);
        V::transpose(rows);
#pragma GCC unroll 8
        for (size_t r = 0; r < 8; ++r) rows[r].store(keys + (i + r) * kKeys + j);
      }
      for (; i < dim(); ++i) {
        for (size_t r = 0; r < 8; ++r) keys[i * kKeys + j + r] = pool[offsets[j + r] + i];
      }
    }
  }

  const float* query(size_t index) const {
    const size_t token = span.row->first_token + span.first_token + index / span.head_count;
    return span.args->q + token * span.args->q_stride + span.head(index) * dim();
  }

  /// scores = q . k, summed over dimensions in order.
  template <int kRows, int kVecs>
  void score(size_t first) {
    const float* q[kRows];
    for (int r = 0; r < kRows; ++r) q[r] = query(first + static_cast<size_t>(r));
    for (size_t j = 0; j < kKeyVecs; j += kVecs) {
      V acc[kRows][kVecs];
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (int c = 0; c < kVecs; ++c) acc[r][c] = V::zero();
      }
      const float* key = keys + j * V::kLanes;
      for (size_t i = 0; i < dim(); ++i, key += kKeys) {
        V k[kVecs];
#pragma GCC unroll 4
        for (int c = 0; c < kVecs; ++c) k[c] = V::load(key + c * static_cast<int>(V::kLanes));
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) {
          const V factor = V::all(q[r][i]);
#pragma GCC unroll 4
          for (int c = 0; c < kVecs; ++c) acc[r][c] = V::fma(factor, k[c], acc[r][c]);
        }
      }
      for (int r = 0; r < kRows; ++r) {
        float* out = scores + (first + static_cast<size_t>(r)) * kKeys + j * V::kLanes;
        for (int c = 0; c < kVecs; ++c) acc[r][c].store(out + c * static_cast<int>(V::kLanes));
      }
    }
  }

  /// Turns a query's scores into weights and moves its greatest score and total on.
  void weigh(size_t query_index) {
    float* s = scores + query_index * kKeys;
    const size_t at = span.position(query_index);
    const size_t visible = span.first_visible(at);
    const size_t from = visible > begin ? visible - begin : 0;
    const size_t to = at + 1 < begin + kKeys ? (at + 1 > begin ? at + 1 - begin : 0) : kKeys;
    if (from >= to) {
      for (size_t j = 0; j < kKeys; ++j) s[j] = 0.0f;
      decay[query_index] = 1.0f;
      return;
    }
    const float cap = span.args->softcap;
    V v[kKeyVecs];
    for (size_t j = 0; j < kKeyVecs; ++j) {
      v[j] = V::load(s + j * V::kLanes) * V::all(span.args->scale);
      if (cap > 0.0f) v[j] = V::all(cap) * vec_tanh(v[j] / V::all(cap));
      v[j].store(s + j * V::kLanes);
    }
    for (size_t j = 0; j < from; ++j) s[j] = -std::numeric_limits<float>::infinity();
    for (size_t j = to; j < kKeys; ++j) s[j] = -std::numeric_limits<float>::infinity();
    for (size_t j = 0; j < kKeyVecs; ++j) v[j] = V::load(s + j * V::kLanes);
    const float most = V::max(V::max(v[0], v[1]), V::max(v[2], v[3])).greatest();
    float& greatest = state.greatest[query_index];
    const float next = greatest > most ? greatest : most;
    for (size_t j = 0; j < kKeyVecs; ++j) {
      v[j] = vec_exp(v[j] - V::all(next));
      v[j].store(s + j * V::kLanes);
    }
    const float sum = ((v[0] + v[1]) + (v[2] + v[3])).sum();
    decay[query_index] = scalar_exp<V>(greatest - next);
    float& total = state.total[query_index];
    total = total * decay[query_index] + sum;
    greatest = next;
  }

  /// values = values * decay + weights . v, over keys in order, for kVecs vectors of dimensions.
  template <int kRows, int kVecs>
  [[gnu::always_inline]] void add_dims(size_t first, size_t i) {
    const float* pool = span.args->v_pool + i;
    V acc[kRows][kVecs];
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const size_t q = first + static_cast<size_t>(r);
#pragma GCC unroll 4
      for (int c = 0; c < kVecs; ++c) {
        acc[r][c] = V::load(state.values + q * dim() + i + c * static_cast<int>(V::kLanes)) *
                    V::all(decay[q]);
      }
    }
    const float* weight = scores + first * kKeys;
    for (size_t j = low; j < high; ++j) {
      V value[kVecs];
#pragma GCC unroll 4
      for (int c = 0; c < kVecs; ++c)
        value[c] = V::load(pool + offsets[j] + c * static_cast<int>(V::kLanes));
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const V factor = V::all(weight[static_cast<size_t>(r) * kKeys + j]);
#pragma GCC unroll 4
        for (int c = 0; c < kVecs; ++c) acc[r][c] = V::fma(factor, value[c], acc[r][c]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      float* out = state.values + (first + static_cast<size_t>(r)) * dim() + i;
      for (int c = 0; c < kVecs; ++c) acc[r][c].store(out + c * static_cast<int>(V::kLanes));
    }
  }

  /// The last dimensions of a head size that is no multiple of a vector.
  void add_tail(size_t q, size_t i, size_t n) {
    float* out = state.values + q * dim() + i;
    V acc = V::load(out, n) * V::all(decay[q]);
    for (size_t j = low; j < high; ++j) {
      acc = V::fma(V::all(scores[q * kKeys + j]), V::load(span.args->v_pool + offsets[j] + i, n),
                   acc);
    }
    acc.store(out, n);
  }

  template <int kRows, int kVecs>
  void add_values(size_t first) {
    size_t i = 0;
    for (; i + kVecs * V::kLanes <= dim(); i += kVecs * V::kLanes) add_dims<kRows, kVecs>(first, i);
    for (; i + V::kLanes <= dim(); i += V::kLanes) add_dims<kRows, 1>(first, i);
    for (size_t r = 0; i < dim() && r < kRows; ++r) add_tail(first + r, i, dim() - i);
  }

  template <int kRows>
  void run_rows(size_t first) {
    constexpr int kVecs = kRows <= 3 ? 4 : 2;
    score<kRows, kVecs>(first);
    for (size_t r = 0; r < kRows; ++r) weigh(first + r);
    add_values<kRows, kVecs>(first);
  }

  void run() {
    find_keys();
    transpose_keys();
    size_t q = 0;
    for (; q + 6 <= span.queries(); q += 6) run_rows<6>(q);
    switch (span.queries() - q) {
      case 1:
        return run_rows<1>(q);
      case 2:
        return run_rows<2>(q);
      case 3:
        return run_rows<3>(q);
      case 4:
        return run_rows<4>(q);
      case 5:
        return run_rows<5>(q);
      default:
        return;
    }
  }
};

template <class V>
void attend_span(const AttentionSpan& span, const SpanState& state, float* scratch) {
  const size_t dim = span.args->head_dim;
  for (size_t q = 0; q < span.queries(); ++q) {
    state.greatest[q] = -std::numeric_limits<float>::infinity();
    state.total[q] = 0.0f;
  }
  for (size_t i = 0; i < span.queries() * dim; ++i) state.values[i] = 0.0f;

  const size_t first = span.first_visible(span.position(0));
  const size_t last = span.position(span.queries() - 1);
  const size_t end = span.key_begin + AttentionSpan::kSpanKeys;
  for (size_t begin = span.key_begin; begin < end && begin <= last;
       begin += AttentionSpan::kBlockKeys) {
    if (begin + AttentionSpan::kBlockKeys <= first) continue;
    AttentionBlock<V> block{.span = span, .state = state, .begin = begin};
    block.low = first > begin ? first - begin : 0;
    block.high =
        last + 1 - begin < AttentionSpan::kBlockKeys ? last + 1 - begin : AttentionSpan::kBlockKeys;
    block.keys = scratch;
    block.scores = block.keys + dim * AttentionSpan::kBlockKeys;
    block.decay = block.scores + AttentionSpan::kQueries * AttentionSpan::kBlockKeys;
    block.run();
  }
}

template <class V>
void join_spans(const SpanState& into, const SpanState& part, size_t queries, size_t head_dim) {
  for (size_t q = 0; q < queries; ++q) {
    if (part.greatest[q] == -std::numeric_limits<float>::infinity()) continue;  // saw no key
    const float next = into.greatest[q] > part.greatest[q] ? into.greatest[q] : part.greatest[q];
    const float old_factor = scalar_exp<V>(into.greatest[q] - next);
    const float new_factor = scalar_exp<V>(part.greatest[q] - next);
    into.total[q] = into.total[q] * old_factor + part.total[q] * new_factor;
    into.greatest[q] = next;
    float* values = into.values + q * head_dim;
    map2<V>(values, part.values + q * head_dim, values, head_dim,
            [&](V a, V b) { return V::fma(a, V::all(old_factor), b * V::all(new_factor)); });
  }
}

}  // namespace tandem::kernels
