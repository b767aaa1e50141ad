// The inner loops of every kernel, once for each CPU level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"
#include "kernels/attention_span.h"
#include "kernels/causal_conv.h"
#include "kernels/cpu_level.h"
#include "kernels/gated_delta.h"
#include "kernels/grouped_matmul.h"
#include "kernels/key_scores.h"
#include "kernels/kv_write.h"
#include "kernels/matmul_task.h"
#include "kernels/norm.h"
#include "kernels/rope.h"

namespace tandem::kernels {

enum class Gate : uint8_t { kSilu, kGeluTanh, kSigmoid, kClamped, kRelu };

/// Attention of chunks where a level has its own; otherwise null.
struct ChunkAttention {
  size_t queries = 0;                                              // most of a span
  size_t (*scratch)(size_t head_dim, size_t value_dim) = nullptr;  // floats for attend_span()
  void (*attend_span)(const AttentionSpan&, const SpanState&, float* scratch) = nullptr;
};

/// Each works on rows (items) [begin, end) of its operation; strides in the arguments are resolved.
struct KernelTable {
  /// Fills the task's row codes from x.
  void (*prepare)(const MatmulTask&, const float* x, size_t x_stride, size_t begin, size_t end);
  void (*matmul)(const MatmulTask&, size_t begin, size_t end, float* scratch);
  void (*rms_norm)(const RmsNormArgs&, size_t begin, size_t end);
  void (*sum_squares)(const SquareSumArgs&, size_t begin, size_t end);
  void (*rope)(const RopeArgs&, size_t begin, size_t end);
  void (*gated)(const GatedArgs&, Gate, size_t begin, size_t end);
  void (*combine)(const CombineArgs&, size_t begin, size_t end);
  void (*softcap)(float* x, float cap, size_t begin, size_t end);
  /// Fills the state of the span's queries after its keys.
  void (*attend_span)(const AttentionSpan&, const SpanState&, float* scratch);
  /// Continues `into` by a later span's state.
  void (*join_spans)(const SpanState& into,
                     const SpanState& part,
                     size_t queries,
                     size_t value_dim);
  /// Writes what the span's queries attended to.
  void (*finish_span)(const AttentionSpan&, const SpanState&);
  /// Fills the piece's scores.
  void (*score_keys)(const KeyScores&, float* scratch);
  void (*kv_write)(const KvWriteArgs&, size_t begin, size_t end);
  /// Of tokens [begin, end); saves nothing.
  void (*causal_conv)(const CausalConvArgs&, size_t begin, size_t end);
  /// Fills q and k of tokens [begin, end) in `prepared` (DeltaToken).
  void (*normalize_delta)(const GatedDeltaArgs&, float* prepared, size_t begin, size_t end);
  /// Of blocks [begin, end) of columns (kDeltaColumns). `scratch` [key_dim, kDeltaColumns].
  void (*gated_delta)(
      const GatedDeltaArgs&, float* prepared, float* scratch, size_t begin, size_t end);
  ChunkAttention chunks = {};
};

const KernelTable& kernels_of(CpuLevel level);

// Defined where the target has the level.
const KernelTable& portable_kernels();
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();
const KernelTable& amx_kernels();
const KernelTable& neon_kernels();
const KernelTable& neon_dot_kernels();

}  // namespace tandem::kernels
