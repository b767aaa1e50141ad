// The gated delta rule for any vector type.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/gated_delta.h"
#include "kernels/row_kernels.h"
#include "kernels/vec_math.h"

namespace tandem::kernels {

/// to[i] = x[i] * scale / |x|, of one head.
template <class V>
[[gnu::always_inline]] inline void unit_vector(const float* x, float scale, size_t n, float* to) {
  const V factor = V::all(scale / std::sqrt(sum_of_squares<V>(x, n) + 1e-6f));
  map2<V>(x, x, to, n, [&](V value, V) { return value * factor; });
}

/// Fills q and k of prepared tokens [begin, end).
template <class V>
void normalize_delta_range(const GatedDeltaArgs& args, float* prepared, size_t begin, size_t end) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(args.key_dim));
  const size_t keys = args.key_heads * args.key_dim;
  for (size_t t = begin; t < end; ++t) {
    const DeltaToken to = DeltaToken::at(args, prepared, t);
    if (args.form == DeltaForm::kSsd) {
      std::copy_n(args.q + t * args.q_stride, keys, to.q);
      std::copy_n(args.k + t * args.k_stride, keys, to.k);
      continue;
    }
    for (size_t at = 0; at < keys; at += args.key_dim) {
      unit_vector<V>(args.q + t * args.q_stride + at, scale, args.key_dim, to.q + at);
      unit_vector<V>(args.k + t * args.k_stride + at, 1.0f, args.key_dim, to.k + at);
    }
  }
}

/// Rows of key_dim vectors: some columns of a head's state, in a slot or in scratch.
template <class F>
struct DeltaColumnsOf {
  F* at;
  size_t stride;
};

/// Up to kVectors vectors of columns of one value head in one row.
template <class V, DeltaForm kForm, int kVectors, bool kIsPartial>
struct DeltaColumns {
  const GatedDeltaArgs& args;
  float* prepared;
  const StateRow& row;
  size_t head;
  size_t column;
  size_t width;  // of the last vector, where it is partial
  float* scratch;

  using From = DeltaColumnsOf<const float>;
  using To = DeltaColumnsOf<float>;

  [[gnu::always_inline]] V load(const float* p) const {
    if constexpr (kIsPartial) return V::load(p, width);
    return V::load(p);
  }
  [[gnu::always_inline]] void store(V x, float* p) const {
    if constexpr (kIsPartial) return x.store(p, width);
    x.store(p);
  }

  To slot(uint32_t index) const {
    return {args.states + index * args.state_stride + head * args.head_floats() + column,
            args.value_dim};
  }
  To work() const { return {scratch, kVectors * V::kLanes}; }

  void copy(From from, To to) const {
    if (from.at == to.at) return;
    for (size_t i = 0; i < args.key_dim; ++i)
      for (size_t j = 0; j < kVectors; ++j)
        store(load(from.at + i * from.stride + j * V::kLanes),
              to.at + i * to.stride + j * V::kLanes);
  }

  void save(size_t tokens, From state) const {
    for (const StateSave& each : row.saves)
      if (each.tokens == tokens) copy(state, slot(each.slot));
  }

  From first_state() const {
    if (row.state) return {slot(*row.state).at, args.value_dim};
    const To zeros = work();
    for (size_t i = 0; i < args.key_dim; ++i)
      for (size_t j = 0; j < kVectors; ++j)
        store(V::zero(), zeros.at + i * zeros.stride + j * V::kLanes);
    return {zeros.at, zeros.stride};
  }

  /// Where the state after the row lies at last, or scratch.
  To last_state() const {
    if (row.saves.empty() || row.saves.back().tokens != row.count) return work();
    return slot(row.saves.back().slot);
  }

  const float* key_of(size_t token) const {
    const size_t shared = head / (args.value_heads / args.key_heads);
    return DeltaToken::at(args, prepared, token).k + shared * args.key_dim;
  }
  const float* decay_of(size_t token) const {
    return DeltaToken::at(args, prepared, token).g + head * args.decays();
  }
  /// What multiplies row i of a state to find a key in it, once it has shrunk where rows shrink
  /// each by itself.
  [[gnu::always_inline]] static V factor(const float* key, const float* decay, size_t i) {
    return V::all(kForm == DeltaForm::kChannelDelta ? key[i] * decay[i] : key[i]);
  }

  /// What a token's key finds in the state before it.
  [[gnu::always_inline]] void look(size_t token, From from, V* seen) const {
    const float *k = key_of(token), *decay = decay_of(token);
    for (int j = 0; j < kVectors; ++j) seen[j] = V::zero();
    for (size_t i = 0; i < args.key_dim; ++i) {
      const V key = factor(k, decay, i);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j)
        seen[j] = V::fma(key, load(from.at + i * from.stride + j * V::kLanes), seen[j]);
    }
  }

  /// What a token adds to the state with its key, and what it reads of itself alone.
  [[gnu::always_inline]] void begin_token(size_t token, V* seen, V* change, V* out) const {
    const DeltaToken x = DeltaToken::at(args, prepared, token);
    const V g = V::all(decay_of(token)[0]), beta = V::all(x.beta[head]);
    const float* v = args.v + token * args.v_stride + head * args.value_dim + column;
    for (int j = 0; j < kVectors; ++j) {
      const V value = load(v + j * V::kLanes);
      const V old = kForm == DeltaForm::kChannelDelta ? seen[j] : g * seen[j];
      change[j] = (kForm == DeltaForm::kSsd ? value : value - old) * beta;
      out[j] = kForm == DeltaForm::kSsd ? value * V::all(args.skip[head]) : V::zero();
      seen[j] = V::zero();
    }
  }

  /// One token: the state moves from one place to another, or stays where it is. `seen` is what its
  /// key finds; with kHasNext, it becomes what the next token's finds.
  template <bool kHasNext>
  [[gnu::always_inline]] void run_token(size_t token, From from, To to, V* seen) const {
    const float* k = key_of(token);
    const DeltaToken x = DeltaToken::at(args, prepared, token);
    const float* q = x.q + (k - x.k);
    const float* decay = decay_of(token);
    const float* next = kHasNext ? key_of(token + 1) : k;
    const float* next_decay = kHasNext ? decay_of(token + 1) : decay;
    V change[kVectors], out[kVectors];
    begin_token(token, seen, change, out);
    for (size_t i = 0; i < args.key_dim; ++i) {
      const V kept = V::all(decay[kForm == DeltaForm::kChannelDelta ? i : 0]);
      const V wanted = factor(next, next_decay, i);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        const V old = kept * load(from.at + i * from.stride + j * V::kLanes);
        const V state = V::fma(V::all(k[i]), change[j], old);
        store(state, to.at + i * to.stride + j * V::kLanes);
        out[j] = V::fma(V::all(q[i]), state, out[j]);
        if constexpr (kHasNext) seen[j] = V::fma(wanted, state, seen[j]);
      }
    }
    float* y = args.out + (token * args.value_heads + head) * args.value_dim + column;
    for (int j = 0; j < kVectors; ++j) store(out[j], y + j * V::kLanes);
  }

  void run() const {
    From state = first_state();
    save(0, state);
    if (row.count == 0) return;
    constexpr bool kLooks = kForm != DeltaForm::kSsd;
    V seen[kVectors];
    for (V& each : seen) each = V::zero();
    if constexpr (kLooks) look(row.first_token, state, seen);
    for (size_t n = 1; n < row.count; ++n) {
      const To to = work();
      run_token<kLooks>(row.first_token + n - 1, state, to, seen);
      state = {to.at, to.stride};
      save(n, state);
    }
    const To to = last_state();
    run_token<false>(row.first_token + row.count - 1, state, to, seen);
    save(row.count, {to.at, to.stride});
  }
};

/// Blocks [begin, end) of kDeltaColumns columns of every value head of every row.
template <class V, DeltaForm kForm>
[[gnu::always_inline]] inline void run_delta_blocks(
    const GatedDeltaArgs& args, float* prepared, float* scratch, size_t begin, size_t end) {
  constexpr size_t kWide = 4 * V::kLanes;
  const size_t blocks = (args.value_dim + kDeltaColumns - 1) / kDeltaColumns;
  for (size_t unit = begin; unit < end; ++unit) {
    const StateRow& row = args.rows[unit / blocks / args.value_heads];
    const size_t head = unit / blocks % args.value_heads;
    size_t column = unit % blocks * kDeltaColumns;
    const size_t last = std::min(column + kDeltaColumns, args.value_dim);
    for (; column + kWide <= last; column += kWide)
      DeltaColumns<V, kForm, 4, false>{args, prepared, row, head, column, 0, scratch}.run();
    for (; column + V::kLanes <= last; column += V::kLanes)
      DeltaColumns<V, kForm, 1, false>{args, prepared, row, head, column, 0, scratch}.run();
    if (column < last)
      DeltaColumns<V, kForm, 1, true>{args, prepared, row, head, column, last - column, scratch}
          .run();
  }
}

template <class V>
void gated_delta_range(
    const GatedDeltaArgs& args, float* prepared, float* scratch, size_t begin, size_t end) {
  switch (args.form) {
    case DeltaForm::kGatedDelta:
      return run_delta_blocks<V, DeltaForm::kGatedDelta>(args, prepared, scratch, begin, end);
    case DeltaForm::kChannelDelta:
      return run_delta_blocks<V, DeltaForm::kChannelDelta>(args, prepared, scratch, begin, end);
    case DeltaForm::kSsd:
      return run_delta_blocks<V, DeltaForm::kSsd>(args, prepared, scratch, begin, end);
  }
}

}  // namespace tandem::kernels
