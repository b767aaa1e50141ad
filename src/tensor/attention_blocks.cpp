#include "tensor/attention_paths.h"
#include "tensor/host.h"
#include "tensor/rounds.h"

namespace tandem::tensor {
namespace {

array number(uint32_t x) { return array(x, mx::uint32); }

/// Keys that some tokens take: each KV head's, or, where query heads do not share those evenly,
/// each query head's.
struct TakenKeys {
  array slots;  // [tokens, groups, keys]: rows of a pool [pages * page_tokens * kv_heads, head_dim]
  array seen;   // the same shape: whether the token sees it
};

/// blocks [tokens, groups, top_k], heads [groups, 1]: their KV heads; own [tokens, 1, 1]: the
/// tokens' positions.
TakenKeys taken_keys(const Pool& pool,
                     const array& pages,
                     const array& blocks,
                     const array& heads,
                     const array& own,
                     uint32_t block) {
  const array first = mx::multiply(mx::expand_dims(blocks, 3), number(block));
  const array each = mx::add(first, mx::arange(0, static_cast<int>(block), mx::uint32));
  const array at = mx::reshape(each, {blocks.shape(0), blocks.shape(1), -1});
  const array there = mx::minimum(at, own);  // a position that has been written
  const array page_tokens = number(pool.shape.page_tokens);
  const array page = mx::take(pages, mx::floor_divide(there, page_tokens));
  const array slot = mx::add(mx::multiply(page, page_tokens), mx::remainder(there, page_tokens));
  return {.slots = mx::add(mx::multiply(slot, number(pool.shape.kv_heads)), heads),
          .seen = mx::less_equal(at, own)};
}

}  // namespace

array attend_blocks(const Pool& pool,
                    const array& pages,
                    const array& q,
                    const StepRow& row,
                    const AttentionShape& shape,
                    const array& blocks,
                    uint32_t block) {
  const int heads = q.shape(1), dim = q.shape(2);
  std::vector<uint32_t> kv_heads = shape.kv_of_head;
  array lists = blocks;
  if (is_regular(shape)) {
    kv_heads.resize(shape.kv_heads);
    for (uint32_t h = 0; h < shape.kv_heads; ++h) kv_heads[h] = h;
  } else {
    lists = mx::take(blocks, from_host(kv_heads), 1);
  }
  const int groups = lists.shape(1), top_k = lists.shape(2), keys = top_k * static_cast<int>(block);
  const array kv_head = from_host(kv_heads, {groups, 1});
  const array all_keys = mx::reshape(pool.keys, {-1, dim}),
              all_values = mx::reshape(pool.values, {-1, dim});
  return in_rounds(q.shape(0), int64_t{groups} * keys * dim, [&](int begin, int end) {
    const auto start = static_cast<int>(row.start);
    const int tokens = end - begin;
    const array own =
        mx::reshape(mx::arange(start + begin, start + end, mx::uint32), {tokens, 1, 1});
    const TakenKeys taken = taken_keys(
        pool, pages, mx::slice(lists, {begin, 0, 0}, {end, groups, top_k}), kv_head, own, block);
    const array mask =
        mx::broadcast_to(mx::expand_dims(taken.seen, 2), {tokens, groups, heads / groups, keys});
    const array some = mx::slice(q, {begin, 0, 0}, {end, heads, dim});
    const array out = mx::fast::scaled_dot_product_attention(
        mx::expand_dims(some, 2), mx::take(all_keys, taken.slots, 0),
        mx::take(all_values, taken.slots, 0), shape.scale, "",
        mx::reshape(mask, {tokens, heads, 1, keys}));
    return mx::reshape(out, {tokens, -1});
  });
}

}  // namespace tandem::tensor
