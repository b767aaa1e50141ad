// Attention whose past is one matrix a head: the gated delta rule, and its relatives.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/pool.h"
#include "kernels/state_rows.h"

namespace tandem::kernels {

/// How a token enters the state.
enum class DeltaForm : uint8_t {
  kGatedDelta,    // of Qwen: one decay a head
  kChannelDelta,  // of Kimi: one decay a key channel
  kSsd,           // of Mamba 2: adds to what is there
};

/// For each value head, with S [key_dim, value_dim] its state before token t, and the key head that
/// its group of value heads shares:
///
///   q = q / sqrt(sum of q^2 + 1e-6) / sqrt(key_dim), k = k / sqrt(sum of k^2 + 1e-6)
///   g = exp(-exp(a_log) * softplus(a + dt_bias)), beta = sigmoid(b)
///   S = g S + k d^T, where d = beta (v - g S^T k); out = S^T q
///
/// With channel decays, a and dt_bias have one value for each key channel of a value head, and so
/// has g, which scales the rows of S. Mamba 2 has q (its C) and k (its B) as they are, and
///
///   dt = softplus(a + dt_bias) between the limits, g = exp(-exp(a_log) * dt)
///   S = g S + k (dt v)^T; out = S^T q + skip * v
///
/// Sums over key_dim are added up in its order, but for the norms, whose order is the CPU level's:
/// a token's bits depend on nothing but its row's tokens and the level.
struct GatedDeltaArgs {
  const float* q = nullptr;  // [tokens, key_heads, key_dim]
  const float* k = nullptr;  // as q
  const float* v = nullptr;  // [tokens, value_heads, value_dim]
  const float* a = nullptr;  // [tokens, value_heads(, key_dim)]; of kSsd null: zeros
  const float* b = nullptr;  // [tokens, value_heads]; not of kSsd
  size_t q_stride = 0;       // floats from token to token; 0 means no gaps
  size_t k_stride = 0;
  size_t v_stride = 0;
  size_t a_stride = 0;
  size_t b_stride = 0;
  const float* a_log = nullptr;    // [value_heads]
  const float* dt_bias = nullptr;  // as a, of one token
  const float* skip = nullptr;     // [value_heads]; kSsd only
  float least_dt = 0;              // kSsd only
  float most_dt = 0;
  DeltaForm form = DeltaForm::kGatedDelta;
  size_t key_heads = 0;
  size_t value_heads = 0;  // a multiple of key_heads
  size_t key_dim = 0;
  size_t value_dim = 0;
  std::span<const StateRow> rows = {};
  float* states = nullptr;  // a slot's: [value_heads, key_dim, value_dim]
  size_t state_stride = 0;  // floats from slot to slot; 0 means no gaps
  float* out = nullptr;     // [tokens, value_heads, value_dim]

  [[gnu::always_inline]] size_t head_floats() const { return key_dim * value_dim; }
  /// Decays of a value head.
  [[gnu::always_inline]] size_t decays() const {
    return form == DeltaForm::kChannelDelta ? key_dim : 1;
  }
};

/// A token's q and k, normalised and scaled where the form does so, and its g and beta.
struct DeltaToken {
  float* q;     // [key_heads, key_dim]
  float* k;     // as q
  float* g;     // [value_heads, decays]
  float* beta;  // [value_heads]; of kSsd dt

  [[gnu::always_inline]] static size_t floats(const GatedDeltaArgs& args) {
    return 2 * args.key_heads * args.key_dim + args.value_heads * (args.decays() + 1);
  }
  [[gnu::always_inline]] static DeltaToken at(const GatedDeltaArgs& args,
                                              float* all,
                                              size_t token) {
    const size_t keys = args.key_heads * args.key_dim;
    float* q = all + token * floats(args);
    return {.q = q,
            .k = q + keys,
            .g = q + 2 * keys,
            .beta = q + 2 * keys + args.value_heads * args.decays()};
  }
};

/// Columns of a value head that are computed together, token by token.
inline constexpr size_t kDeltaColumns = 64;

void gated_delta(WorkerPool& pool, const GatedDeltaArgs& args);

}  // namespace tandem::kernels
