#include "tensor/key_choice.h"

#include <limits>

#include "kernels/key_choice.h"
#include "kernels/kv_write.h"
#include "tensor/attention_paths.h"
#include "tensor/host.h"
#include "tensor/state_pool.h"

namespace tandem::tensor {
namespace {

/// One layer's choice with its arguments bound; tokens and angles are the step's of the moment.
struct BoundKeyChoice {
  const KeyChoiceShape& shape;
  const Step& step;
  std::shared_ptr<kernels::WorkerPool> workers;
  float* q;
  float* k;
  size_t k_stride;
  std::byte* pool;
  kernels::KeyChoiceArgs args;  // rows unset

  void operator()() const {
    kernels::RopeArgs rope = rope_args(*shape.rope, step);
    rope.head_dim = shape.dim;
    kernels::RopeArgs of_queries = rope;
    of_queries.x = q;
    of_queries.heads = shape.heads;
    of_queries.token_stride = args.q_stride;
    kernels::rope(*workers, of_queries);
    kernels::kv_write(*workers, {.k = k,
                                 .k_stride = k_stride,
                                 .tokens = step.tokens(),
                                 .kv_heads = 1,
                                 .head_dim = shape.dim,
                                 .page_tokens = args.page_tokens,
                                 .slots = step.slots().data(),
                                 .kv_type = args.kv_type,
                                 .k_pool = pool,
                                 .rope = &rope});
    kernels::KeyChoiceArgs choice = args;
    choice.rows = step.spans();
    kernels::choose_keys(*workers, choice);
  }
};

ChosenKeys choose_fast(Pool& pool,
                       const KeyChoiceInputs& x,
                       const KeyChoiceShape& shape,
                       const Step& step,
                       const Context& context) {
  const auto bind = [&shape, &step, workers = context.workers,
                     page_tokens = pool.shape.page_tokens](const std::vector<array>& in,
                                                           std::vector<array>& out) -> CpuCall {
    allocate(out[0]);
    pass_order(out[1], in[4]);
    auto* keys = const_cast<std::byte*>(in[3].data<std::byte>());
    const bool is_half = in[3].dtype() == mx::float16;
    return BoundKeyChoice{
        .shape = shape,
        .step = step,
        .workers = workers,
        .q = const_cast<float*>(in[0].data<float>()),
        .k = const_cast<float*>(in[1].data<float>()),
        .k_stride = row_stride(in[1]),
        .pool = keys,
        .args = {.q = in[0].data<float>(),
                 .weights = in[2].data<float>(),
                 .q_stride = row_stride(in[0]),
                 .weights_stride = row_stride(in[2]),
                 .heads = shape.heads,
                 .dim = shape.dim,
                 .k_pool = keys,
                 .kv_type = is_half ? kernels::ScalarType::kF16 : kernels::ScalarType::kF32,
                 .page_tokens = page_tokens,
                 .top_k = shape.top_k,
                 .chosen = out[0].data<uint32_t>()}};
  };
  auto op = std::make_shared<CpuOp>(mx::default_stream(mx::Device::cpu), "KeyChoice", bind);
  const auto out = array::make_arrays({{x.q.shape(0), static_cast<int>(shape.top_k)}, {1}},
                                      {mx::uint32, mx::uint32}, op,
                                      {x.q, x.k, x.weights, pool.keys, pool.order});
  pool.order = out[1];
  return {.top_k = shape.top_k, .positions = out[0]};
}

/// Keys of positions [0, count): [count, dim].
array first_keys(const Pool& pool, const array& pages, int count) {
  const array all = mx::reshape(mx::take(pool.keys, pages, 0), {-1, pool.keys.shape(3)});
  return mx::slice(all, {0, 0}, {count, all.shape(1)});
}

/// Which of a row's keys each of its tokens takes: q [tokens, heads, dim], weights [tokens, heads],
/// k [keys, dim] → [tokens, keys].
array mask_of(const array& q, const array& weights, const array& k, int top_k) {
  const int tokens = q.shape(0), keys = k.shape(0);
  const array heads = mx::matmul(mx::swapaxes(q, 0, 1), mx::transpose(k));  // [heads, tokens, keys]
  const array positive = mx::maximum(mx::astype(heads, mx::float32), array(0.0F));
  const array weighed =
      mx::multiply(positive, mx::expand_dims(mx::transpose(mx::astype(weights, mx::float32)), 2));
  const array own = mx::expand_dims(mx::arange(keys - tokens, keys, mx::int32), 1);
  const array seen = mx::less_equal(mx::arange(0, keys, mx::int32), own);
  const array scores =
      mx::where(seen, mx::sum(weighed, 0), array(-std::numeric_limits<float>::infinity()));
  const array order = mx::argpartition(scores, -top_k, -1);
  const array best = mx::slice(order, {0, keys - top_k}, {tokens, keys});
  const array taken = mx::put_along_axis(mx::zeros({tokens, keys}, mx::bool_), best,
                                         mx::full(best.shape(), array(true)), -1);
  return mx::logical_and(taken, seen);
}

ChosenKeys choose_plain(Pool& pool,
                        const KeyChoiceInputs& x,
                        const KeyChoiceShape& shape,
                        const Step& step) {
  const int tokens = x.q.shape(0), dim = static_cast<int>(shape.dim);
  const array q = rotate(mx::reshape(x.q, {tokens, -1, dim}), *shape.rope, step);
  const array k = rotate(mx::reshape(x.k, {tokens, 1, dim}), *shape.rope, step);
  write(pool, mx::reshape(k, x.k.shape()), x.k, step);
  const array pages = ordered(step.page_array(), pool.order);
  ChosenKeys out{.top_k = shape.top_k};
  int at = 0, page = 0;
  for (const StepRow& row : step.rows()) {
    const int end = at + static_cast<int>(row.tokens.size());
    const int last_page = page + static_cast<int>(row.pages.size());
    const uint32_t keys = row.start + static_cast<uint32_t>(row.tokens.size());
    out.masks.emplace_back();
    if (keys > shape.top_k)
      out.masks.back() = mask_of(mx::slice(q, {at, 0, 0}, {end, q.shape(1), dim}),
                                 mx::slice(x.weights, {at, 0}, {end, x.weights.shape(1)}),
                                 mx::astype(first_keys(pool, mx::slice(pages, {page}, {last_page}),
                                                       static_cast<int>(keys)),
                                            q.dtype()),
                                 static_cast<int>(shape.top_k));
    if (const auto& mask = out.masks.back())  // the next write waits for what was read
      pool.order = mx::add(
          pool.order, mx::astype(mx::reshape(mx::slice(*mask, {0, 0}, {1, 1}), {1}), mx::uint32));
    at = end;
    page = last_page;
  }
  return out;
}

}  // namespace

ChosenKeys choose_keys(Pool& pool,
                       const KeyChoiceInputs& x,
                       const KeyChoiceShape& shape,
                       const Step& step,
                       const Context& context) {
  return context.is_fast() ? choose_fast(pool, x, shape, step, context)
                           : choose_plain(pool, x, shape, step);
}

}  // namespace tandem::tensor
