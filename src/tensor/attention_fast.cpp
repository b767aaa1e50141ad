#include <algorithm>

#include "kernels/attention.h"
#include "kernels/kv_write.h"
#include "kernels/rope.h"
#include "tensor/attention_paths.h"
#include "tensor/state_pool.h"

namespace tandem::tensor {
namespace {

/// The inputs of a node are const by convention only.
float* floats_of(const array& x) { return const_cast<float*>(x.data<float>()); }
std::byte* content_of(const array& x) { return const_cast<std::byte*>(x.data<std::byte>()); }

/// One layer's attention with its arguments bound; tokens and angles are the step's of the moment.
struct BoundAttention {
  const AttentionShape& shape;
  const Step& step;
  std::shared_ptr<kernels::WorkerPool> workers;
  uint32_t page_tokens;
  uint32_t value_dim;
  PageGroup group;
  kernels::ScalarType kv_type;
  float* q;
  float* k;
  float* v;
  size_t q_stride, k_stride, v_stride;
  std::byte* k_pool;
  std::byte* v_pool;
  float* out;
  const uint32_t* chosen;  // as ChosenKeys, or null
  uint32_t block;
  uint32_t top_k;

  void operator()() const {
    const kernels::RopeArgs rope = rotation();
    if (shape.rope) rotate_queries(rope);
    if (shape.query_scale.beta != 0) scale_queries();
    if (!shape.only_reads) write(shape.rope ? &rope : nullptr);
    attend();
  }

 private:
  kernels::RopeArgs rotation() const {
    if (!shape.rope) return {};
    kernels::RopeArgs rope = rope_args(*shape.rope, step);
    rope.head_dim = shape.head_dim;
    return rope;
  }

  void rotate_queries(kernels::RopeArgs rope) const {
    rope.x = q;
    rope.heads = shape.heads;
    rope.token_stride = q_stride;
    kernels::rope(*workers, rope);
  }

  void scale_queries() const {
    for (size_t t = 0; t < step.tokens(); ++t) {
      const float factor = shape.query_scale.at(step.positions()[t]);
      if (factor == 1) continue;
      float* row = q + t * q_stride;
      for (size_t i = 0; i < size_t{shape.heads} * shape.head_dim; ++i) row[i] *= factor;
    }
  }

  void write(const kernels::RopeArgs* rope) const {
    kernels::kv_write(*workers, {.k = k,
                                 .v = v,
                                 .has_key_rows = v == nullptr,
                                 .k_stride = k_stride,
                                 .v_stride = v_stride,
                                 .tokens = step.tokens(),
                                 .kv_heads = shape.kv_heads,
                                 .head_dim = shape.head_dim,
                                 .value_dim = shape.value_dim,
                                 .page_tokens = page_tokens,
                                 .slots = step.slots(group).data(),
                                 .kv_type = kv_type,
                                 .k_pool = k_pool,
                                 .v_pool = v_pool,
                                 .rope = rope});
  }

  /// A row whose tokens choose becomes the part of it that does not, and a row for each that does.
  /// `lists` keeps pages that rows name.
  std::vector<kernels::AttentionRow> chosen_rows(std::vector<uint32_t>& lists) const {
    std::vector<kernels::AttentionRow> rows;
    const size_t most = size_t{top_k} * block;  // positions that a token takes
    if (block > 1) lists.reserve(step.tokens() * shape.kv_heads * most / page_tokens);
    for (kernels::AttentionRow row : step.spans(group)) {
      const size_t all = row.start < most ? std::min<size_t>(row.count, most - row.start) : 0;
      for (size_t t = all; t < row.count; ++t) {
        kernels::AttentionRow one = row;
        one.first_token = row.first_token + t;
        one.count = 1;
        one.start = row.start + t;
        block > 1 ? take_blocks(one, lists) : take_keys(one);
        rows.push_back(one);
      }
      row.count = all;
      if (all > 0) rows.push_back(row);
    }
    return rows;
  }

  void take_keys(kernels::AttentionRow& one) const {
    one.start = top_k - 1;
    one.chosen = chosen + one.first_token * top_k;
  }

  /// The token attends as if the blocks' pages were all there are: its own block, which it sees in
  /// part, is the last of each list. So few queries share a block that tiles do not pay.
  void take_blocks(kernels::AttentionRow& one, std::vector<uint32_t>& lists) const {
    const size_t last = one.start / page_tokens, pages = block / page_tokens, begin = lists.size();
    const uint32_t* ids = chosen + one.first_token * shape.kv_heads * top_k;
    for (size_t i = 0; i < size_t{shape.kv_heads} * top_k; ++i)
      for (size_t page = ids[i] * pages; page < (ids[i] + 1) * pages; ++page)
        lists.push_back(one.pages[std::min(page, last)]);
    one.pages = lists.data() + begin;
    one.pages_stride = top_k * pages;
    one.start = size_t{top_k - 1} * block + one.start % block;
    one.is_chunk = false;
  }

  void attend() const {
    if (chosen == nullptr) return attend_to(step.spans(group));
    std::vector<uint32_t> lists;
    attend_to(chosen_rows(lists));
  }

  void attend_to(std::span<const kernels::AttentionRow> rows) const {
    kernels::attention(*workers, {.q = q,
                                  .out = out,
                                  .q_stride = q_stride,
                                  .k_pool = k_pool,
                                  .v_pool = v_pool,
                                  .kv_type = kv_type,
                                  .page_tokens = page_tokens,
                                  .heads = shape.heads,
                                  .kv_heads = shape.kv_heads,
                                  .head_dim = shape.head_dim,
                                  .value_dim = value_dim,
                                  .kv_head_of = shape.kv_of_head.data(),
                                  .rows = rows,
                                  .scale = shape.scale,
                                  .window = shape.window,
                                  .sinks = shape.sinks.empty() ? nullptr : shape.sinks.data(),
                                  .softcap = shape.softcap});
  }
};

}  // namespace

kernels::RopeArgs rope_args(const Rope& rope, const Step& step) {
  const RopeTable& table = step.rope_table(rope);
  return {.tokens = step.tokens(),
          .pairs = rope.inverse_frequencies.size(),
          .interleaved = rope.interleaved,
          .cosine = table.cosine.data(),
          .sine = table.sine.data(),
          .scale = rope.scale};
}

array attend_fast(Pool& pool,
                  const QueryKeyValue& x,
                  const AttentionShape& shape,
                  const Step& step,
                  const Context& context,
                  const ChosenKeys* chosen) {
  const auto bind = [&shape, &step, workers = context.workers, page_tokens = pool.shape.page_tokens,
                     value_dim = pool.shape.values(), group = pool.group,
                     is_latent = pool.is_latent(), block = chosen == nullptr ? 1 : chosen->block,
                     top_k = chosen == nullptr ? 0 : chosen->top_k](
                        const std::vector<array>& in, std::vector<array>& out) -> CpuCall {
    allocate(out[0]);
    pass_order(out[1], in[5]);
    const bool is_half = in[3].dtype() == mx::float16;
    return BoundAttention{
        .shape = shape,
        .step = step,
        .workers = workers,
        .page_tokens = page_tokens,
        .value_dim = value_dim,
        .group = group,
        .kv_type = is_half ? kernels::ScalarType::kF16 : kernels::ScalarType::kF32,
        .q = floats_of(in[0]),
        .k = floats_of(in[1]),
        .v = is_latent ? nullptr : floats_of(in[2]),
        .q_stride = row_stride(in[0]),
        .k_stride = row_stride(in[1]),
        .v_stride = row_stride(in[2]),
        .k_pool = content_of(in[3]),
        .v_pool = is_latent ? nullptr : content_of(in[4]),
        .out = out[0].data<float>(),
        .chosen = top_k == 0 ? nullptr : in[6].data<uint32_t>(),
        .block = block,
        .top_k = top_k};
  };
  const auto width = static_cast<int>(shape.heads * pool.shape.values());
  auto op = std::make_shared<CpuOp>(mx::default_stream(mx::Device::cpu), "PagedAttention", bind);
  std::vector<array> inputs = {x.q, x.k, x.v, pool.keys, pool.values, pool.order};
  if (chosen != nullptr) inputs.push_back(*chosen->chosen);
  const auto out =
      array::make_arrays({{x.q.shape(0), width}, {1}}, {mx::float32, mx::uint32}, op, inputs);
  pool.order = out[1];
  return out[0];
}

}  // namespace tandem::tensor
