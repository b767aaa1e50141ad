#include "kernels/attention.h"
#include "kernels/rope.h"
#include "tensor/attention_paths.h"

namespace tandem::tensor {
namespace {

/// Rotates in place: the buffer belongs to the projection whose only reader this is.
array rotate_fast(const array& x,
                  const AttentionShape& shape,
                  const Step& step,
                  const Context& context) {
  const auto rotate_rows = [&step, rope = shape.rope, dim = size_t{shape.head_dim},
                            workers = context.workers](const std::vector<array>& in,
                                                       std::vector<array>& out) -> CpuCall {
    share(out[0], in[0]);
    const kernels::RopeArgs args = {.x = out[0].data<float>(),
                                    .tokens = step.tokens(),
                                    .heads = static_cast<size_t>(in[0].shape(1)) / dim,
                                    .head_dim = dim,
                                    .token_stride = row_stride(out[0]),
                                    .pairs = rope->inverse_frequencies.size(),
                                    .interleaved = rope->interleaved,
                                    .scale = rope->scale};
    return [&step, rope, workers, args] {
      const RopeTable& table = step.rope_table(*rope);
      kernels::RopeArgs now = args;
      now.cosine = table.cosine.data();
      now.sine = table.sine.data();
      kernels::rope(*workers, now);
    };
  };
  return cpu_op("Rope", x.shape(), mx::float32, {x}, rotate_rows);
}

}  // namespace

array attend_fast(Pool& pool,
                  const QueryKeyValue& x,
                  const AttentionShape& shape,
                  const Step& step,
                  const Context& context) {
  const array queries = shape.rope ? rotate_fast(x.q, shape, step, context) : x.q;
  const array keys = shape.rope ? rotate_fast(x.k, shape, step, context) : x.k;
  write(pool, keys, x.v, step, context);
  const auto run = [&shape, &step, workers = context.workers](const std::vector<array>& in,
                                                              std::vector<array>& out) -> CpuCall {
    allocate(out[0]);
    const kernels::AttentionArgs args = {.q = in[0].data<float>(),
                                         .out = out[0].data<float>(),
                                         .q_stride = row_stride(in[0]),
                                         .k_pool = in[1].data<float>(),
                                         .v_pool = in[2].data<float>(),
                                         .page_tokens = static_cast<size_t>(in[1].shape(1)),
                                         .heads = shape.heads,
                                         .kv_heads = shape.kv_heads,
                                         .head_dim = shape.head_dim,
                                         .kv_head_of = shape.kv_of_head.data(),
                                         .scale = shape.scale,
                                         .window = shape.window};
    return [&step, workers, args] {
      kernels::AttentionArgs now = args;
      now.rows = step.spans();
      kernels::attention(*workers, now);
    };
  };
  // Our evaluator ends a step before the next begins, so reads need no order of their own.
  return cpu_op("PagedAttention", x.q.shape(), mx::float32,
                {queries, pool.keys, pool.values, pool.order}, run);
}

}  // namespace tandem::tensor
