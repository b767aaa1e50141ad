#include "tensor/key_choice.h"

#include <limits>

#include "kernels/key_choice.h"
#include "kernels/kv_write.h"
#include "tensor/attention_paths.h"
#include "tensor/host.h"
#include "tensor/rounds.h"
#include "tensor/state_pool.h"

namespace tandem::tensor {
namespace {

/// A step of which some rows reuse choices: the tokens that choose do so in runs, and then the
/// others take what they are to take.
class HostReuse {
 public:
  HostReuse(const Step& step, const KeyChoiceShape& shape, uint32_t* chosen, KeptChoices& kept)
      : step_(step),
        shape_(shape),
        chosen_(chosen),
        width_(size_t{shape.heads} * shape.top_k),
        kept_(kept.on_host) {
    for (const StepRow& row : step.rows())
      choosers_.push_back(row.reuse ? reusing(row).choosers(kept_) : std::vector<uint32_t>());
  }

  void operator()(kernels::WorkerPool& workers, kernels::KeyChoiceArgs args) {
    std::vector<kernels::AttentionRow> runs;
    for (size_t i = 0; i < choosers_.size(); ++i) add_runs(i, runs);
    args.rows = runs;
    kernels::choose_keys(workers, args);
    for (size_t i = 0; i < choosers_.size(); ++i)
      if (step_.rows()[i].reuse) settle(i);
  }

 private:
  ReusingRow reusing(const StepRow& row) const {
    return {row, step_.page_tokens(), shape_.block, shape_.top_k};
  }

  void add_runs(size_t index, std::vector<kernels::AttentionRow>& runs) const {
    const kernels::AttentionRow& span = step_.spans()[index];
    const std::vector<uint32_t>& choosers = choosers_[index];
    if (!step_.rows()[index].reuse) return runs.push_back(span);
    for (size_t t = 0; t < span.count; ++t) {
      if (choosers[t] != span.start + t) continue;
      const bool goes_on = t > 0 && choosers[t - 1] == span.start + t - 1;
      if (!goes_on) {
        runs.push_back(span);
        runs.back().first_token += t;
        runs.back().start += t;
        runs.back().count = 0;
      }
      ++runs.back().count;
    }
  }

  /// In the order of positions: a page keeps its last choice.
  void settle(size_t index) {
    const kernels::AttentionRow& span = step_.spans()[index];
    const ReusingRow row = reusing(step_.rows()[index]);
    for (size_t t = 0; t < span.count; ++t) {
      const auto own = static_cast<uint32_t>(span.start + t);
      const uint32_t chooser = choosers_[index][t];
      uint32_t* list = chosen_ + (span.first_token + t) * width_;
      if (chooser != own) std::copy_n(list_of(index, chooser), width_, list);
      if (row.keeps(own)) kept_.keep(row.page(own), own, {list, list + width_});
    }
  }

  const uint32_t* list_of(size_t index, uint32_t chooser) const {
    const kernels::AttentionRow& span = step_.spans()[index];
    if (chooser >= span.start) return chosen_ + (span.first_token + chooser - span.start) * width_;
    return kept_.find(reusing(step_.rows()[index]).page(chooser), chooser)->data();
  }

  const Step& step_;
  const KeyChoiceShape& shape_;
  uint32_t* chosen_;
  size_t width_;
  KeptLists<std::vector<uint32_t>>& kept_;
  std::vector<std::vector<uint32_t>> choosers_;  // of rows that reuse
};

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
  KeptChoices* kept;

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
    if (step.reuses_choices()) return HostReuse(step, shape, args.chosen, *kept)(*workers, choice);
    choice.rows = step.spans();
    kernels::choose_keys(*workers, choice);
  }
};

ChosenKeys choose_fast(Pool& pool,
                       const KeyChoiceInputs& x,
                       const KeyChoiceShape& shape,
                       const Step& step,
                       const Context& context,
                       KeptChoices* kept) {
  const auto bind = [&shape, &step, kept, workers = context.workers,
                     page_tokens = pool.shape.page_tokens](const std::vector<array>& in,
                                                           std::vector<array>& out) -> CpuCall {
    allocate(out[0]);
    pass_order(out[1], in[3]);
    auto* keys = const_cast<std::byte*>(in[2].data<std::byte>());
    const bool is_half = in[2].dtype() == mx::float16, has_weights = in.size() > 4;
    return BoundKeyChoice{
        .shape = shape,
        .step = step,
        .workers = workers,
        .q = const_cast<float*>(in[0].data<float>()),
        .k = const_cast<float*>(in[1].data<float>()),
        .k_stride = row_stride(in[1]),
        .pool = keys,
        .args = {.q = in[0].data<float>(),
                 .weights = has_weights ? in[4].data<float>() : nullptr,
                 .q_stride = row_stride(in[0]),
                 .weights_stride = has_weights ? row_stride(in[4]) : 0,
                 .heads = shape.heads,
                 .dim = shape.dim,
                 .k_pool = keys,
                 .kv_type = is_half ? kernels::ScalarType::kF16 : kernels::ScalarType::kF32,
                 .page_tokens = page_tokens,
                 .block = shape.block,
                 .top_k = shape.top_k,
                 .first_blocks = shape.first_blocks,
                 .last_blocks = shape.last_blocks,
                 .chosen = out[0].data<uint32_t>()},
        .kept = kept};
  };
  auto op = std::make_shared<CpuOp>(mx::default_stream(mx::Device::cpu), "KeyChoice", bind);
  std::vector<array> inputs = {x.q, x.k, pool.keys, pool.order};
  if (x.weights) inputs.push_back(*x.weights);
  const auto chosen = static_cast<int>((x.weights ? 1 : shape.heads) * shape.top_k);
  const auto out =
      array::make_arrays({{x.q.shape(0), chosen}, {1}}, {mx::uint32, mx::uint32}, op, inputs);
  pool.order = out[1];
  return {.block = shape.block, .top_k = shape.top_k, .chosen = out[0]};
}

/// Keys of positions [0, count): [count, dim].
array first_keys(const Pool& pool, const array& pages, int count) {
  const array all = mx::reshape(mx::take(pool.keys, pages, 0), {-1, pool.keys.shape(3)});
  return mx::slice(all, {0, 0}, {count, all.shape(1)});
}

array nothing() { return array(-std::numeric_limits<float>::infinity()); }

/// Positions of tokens of a row.
struct Positions {
  int begin = 0;
  int end = 0;

  /// [tokens, 1]
  array as_column() const { return mx::expand_dims(mx::arange(begin, end, mx::int32), 1); }
};

/// The indices of the top_k greatest of the last axis, in any order.
array greatest(const array& scores, int top_k) {
  mx::Shape begin(scores.ndim(), 0);
  begin.back() = scores.shape(-1) - top_k;
  return mx::slice(mx::argpartition(scores, -top_k, -1), begin, scores.shape());
}

/// Which of a row's keys each of these tokens takes: q [tokens, heads, dim], weights [tokens,
/// heads], k [keys, dim] → [tokens, keys].
array mask_of(const array& q, const array& weights, const array& k, Positions own, int top_k) {
  const int tokens = q.shape(0), keys = k.shape(0);
  const array heads = mx::matmul(mx::swapaxes(q, 0, 1), mx::transpose(k));  // [heads, tokens, keys]
  const array positive = mx::maximum(mx::astype(heads, mx::float32), array(0.0F));
  const array weighed =
      mx::multiply(positive, mx::expand_dims(mx::transpose(mx::astype(weights, mx::float32)), 2));
  const array seen = mx::less_equal(mx::arange(0, keys, mx::int32), own.as_column());
  const array best = greatest(mx::where(seen, mx::sum(weighed, 0), nothing()), top_k);
  const array taken = mx::put_along_axis(mx::zeros({tokens, keys}, mx::bool_), best,
                                         mx::full(best.shape(), array(true)), -1);
  return mx::logical_and(taken, seen);
}

/// The blocks that each of these tokens takes: q [tokens, heads, dim], k [keys, dim] → [tokens,
/// heads, top_k].
array blocks_of(const array& q, const array& k, Positions own, const KeyChoiceShape& shape) {
  const int tokens = q.shape(0), heads = q.shape(1), keys = k.shape(0);
  const int block = static_cast<int>(shape.block), blocks = (keys + block - 1) / block;
  const auto in_float = [](const array& x) { return mx::astype(x, mx::float32); };
  const array scores = mx::matmul(in_float(q), mx::transpose(in_float(k)));
  const array at = mx::expand_dims(own.as_column(), 2);  // [tokens, 1, 1]
  const array seen =
      mx::where(mx::less_equal(mx::arange(0, keys, mx::int32), at), scores, nothing());
  const array whole = mx::pad(seen, {{0, 0}, {0, 0}, {0, blocks * block - keys}}, nothing());
  const array best = mx::max(mx::reshape(whole, {tokens, heads, blocks, block}), 3);
  const array index = mx::arange(0, blocks, mx::int32), last = mx::floor_divide(at, array(block));
  const array is_last = mx::logical_and(
      mx::less_equal(index, last),
      mx::greater(index, mx::subtract(last, array(static_cast<int>(shape.last_blocks)))));
  const array is_first = mx::less(index, array(static_cast<int>(shape.first_blocks)));
  const array is_taken = mx::logical_or(is_first, is_last);
  const array infinity(std::numeric_limits<float>::infinity());
  return greatest(mx::where(is_taken, infinity, best), static_cast<int>(shape.top_k));
}

/// What a row's tokens take; nothing where they all see no more than that. q and weights are the
/// row's, k [keys, dim] all keys that it sees.
array choice_of(const StepRow& row,
                const array& q,
                const std::optional<array>& weights,
                const array& k,
                const KeyChoiceShape& shape) {
  const int64_t scores = int64_t{q.shape(1)} * k.shape(0);
  const auto start = static_cast<int>(row.start), heads = q.shape(1), dim = q.shape(2);
  return in_rounds(q.shape(0), scores, [&](int begin, int end) {
    const array some = mx::slice(q, {begin, 0, 0}, {end, heads, dim});
    const Positions own = {start + begin, start + end};
    if (!weights) return blocks_of(some, k, own, shape);
    return mask_of(some, mx::slice(*weights, {begin, 0}, {end, heads}), k, own,
                   static_cast<int>(shape.top_k));
  });
}

/// What a row's tokens take that reuses choices; choose() makes the choices of all its tokens.
template <class F>
array reused(const StepRow& row,
             const KeyChoiceShape& shape,
             uint32_t page_tokens,
             KeptLists<array>& kept,
             const F& choose) {
  const ReusingRow rule(row, page_tokens, shape.block, shape.top_k);
  const std::vector<uint32_t> choosers = rule.choosers(kept);
  std::vector<array> lists;  // an earlier choice, which the first tokens take, and the row's own
  if (choosers.front() < row.start)
    lists.push_back(*kept.find(rule.page(choosers.front()), choosers.front()));
  const auto before = static_cast<uint32_t>(lists.size());
  if (choosers.back() >= row.start) lists.push_back(choose());
  std::vector<int32_t> from;
  for (const uint32_t chooser : choosers)
    from.push_back(static_cast<int32_t>(chooser < row.start ? 0 : before + chooser - row.start));
  for (uint32_t i = 0; i < choosers.size(); ++i) {
    if (!rule.keeps(row.start + i)) continue;
    const auto at = static_cast<int>(i);
    const array& own = lists.back();
    kept.keep(rule.page(row.start + i), row.start + i,
              mx::slice(own, {at, 0, 0}, {at + 1, own.shape(1), own.shape(2)}));
  }
  return mx::take(lists.size() == 1 ? lists[0] : mx::concatenate(lists, 0), from_host(from), 0);
}

ChosenKeys choose_plain(Pool& pool,
                        const KeyChoiceInputs& x,
                        const KeyChoiceShape& shape,
                        const Step& step,
                        KeptChoices* kept) {
  const int tokens = x.q.shape(0), dim = static_cast<int>(shape.dim);
  const int heads = static_cast<int>(shape.heads);
  const array q = rotate(mx::reshape(x.q, {tokens, heads, dim}), *shape.rope, step);
  const array k = rotate(mx::reshape(x.k, {tokens, 1, dim}), *shape.rope, step);
  write(pool, mx::reshape(k, x.k.shape()), x.k, step);
  const array pages = ordered(step.page_array(), pool.order);
  ChosenKeys out{.block = shape.block, .top_k = shape.top_k};
  int at = 0, page = 0;
  for (const StepRow& row : step.rows()) {
    const int end = at + static_cast<int>(row.tokens.size());
    const int last_page = page + static_cast<int>(row.pages.size());
    const auto keys = static_cast<int>(row.start) + end - at;
    out.of_rows.emplace_back();
    if (static_cast<uint32_t>(keys) > shape.block * shape.top_k) {
      const auto choose = [&] {
        const array seen = first_keys(pool, mx::slice(pages, {page}, {last_page}), keys);
        std::optional<array> weights;
        if (x.weights) weights = mx::slice(*x.weights, {at, 0}, {end, heads});
        array chosen = choice_of(row, mx::slice(q, {at, 0, 0}, {end, heads, dim}), weights,
                                 mx::astype(seen, q.dtype()), shape);
        // The next write waits for what was read.
        const array first = mx::slice(mx::flatten(chosen), {0}, {1});
        pool.order = mx::add(pool.order, mx::astype(first, mx::uint32));
        return chosen;
      };
      out.of_rows.back() =
          row.reuse ? reused(row, shape, step.page_tokens(), kept->on_device, choose) : choose();
    }
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
                       const Context& context,
                       KeptChoices* kept) {
  return context.is_fast() ? choose_fast(pool, x, shape, step, context, kept)
                           : choose_plain(pool, x, shape, step, kept);
}

}  // namespace tandem::tensor
