// A kernel table for one vector type.
#pragma once

#include "kernels/attention_kernel.h"
#include "kernels/causal_conv_kernel.h"
#include "kernels/gated_delta_kernel.h"
#include "kernels/kernel_table.h"
#include "kernels/key_scores_kernel.h"
#include "kernels/kv_write_kernel.h"
#include "kernels/matmul_kernel.h"
#include "kernels/row_codes_kernel.h"
#include "kernels/row_kernels.h"

namespace tandem::kernels {

template <class V>
constexpr KernelTable table_for() {
  return {.prepare = prepare_rows<V>,
          .matmul = matmul_range<V>,
          .rms_norm = rms_norm_range<V>,
          .sum_squares = sum_squares_range<V>,
          .rope = rope_range<V>,
          .gated = gated_range<V>,
          .combine = combine_range<V>,
          .softcap = softcap_range<V>,
          .attend_span = attend_span<V>,
          .join_spans = join_spans<V>,
          .finish_span = finish_span<V>,
          .score_keys = score_keys<V>,
          .kv_write = kv_write_range<V>,
          .causal_conv = causal_conv_range<V>,
          .normalize_delta = normalize_delta_range<V>,
          .gated_delta = gated_delta_range<V>};
}

}  // namespace tandem::kernels
