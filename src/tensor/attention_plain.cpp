#include <algorithm>
#include <limits>

#include "tensor/attention_paths.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

/// x [tokens, heads, head_dim]
array scale_queries(const array& x, const QueryScale& scale, const Step& step) {
  std::vector<float> factors;
  for (const uint32_t position : step.positions()) factors.push_back(scale.at(position));
  const array all = from_host(factors, {x.shape(0), 1, 1});
  return mx::multiply(x, mx::astype(all, x.dtype()));
}

/// Positions [from, to) of a row.
struct Span {
  uint32_t from = 0;
  uint32_t to = 0;

  uint32_t size() const { return to - from; }
  Span operator-(uint32_t first) const { return {.from = from - first, .to = to - first}; }
};

/// The positions that some token of the row sees.
Span seen_by(const StepRow& row, uint32_t window) {
  return {.from = window == 0 || row.start < window ? 0 : row.start + 1 - window,
          .to = static_cast<uint32_t>(row.start + row.tokens.size())};
}

/// These positions, counted from the first one of these pages:
/// [1, heads or kv_heads, size, head_dim].
array gather_row(const array& content, const array& pages, Span span, const AttentionShape& shape) {
  const auto page_tokens = static_cast<uint32_t>(content.shape(1));
  const auto first_page = static_cast<int>(span.from / page_tokens);
  const auto last_page = static_cast<int>((span.to - 1) / page_tokens);
  const array needed = mx::slice(pages, {first_page}, {last_page + 1});
  const int kv_heads = content.shape(2), dim = content.shape(3);
  const array flat = mx::reshape(mx::take(content, needed, 0), {-1, kv_heads, dim});
  const auto skip = static_cast<int>(span.from % page_tokens);
  array out = mx::slice(flat, {skip, 0, 0}, {skip + static_cast<int>(span.size()), kv_heads, dim});
  if (!is_regular(shape)) out = mx::take(out, from_host(shape.kv_of_head), 1);
  return mx::expand_dims(mx::transpose(out, {1, 0, 2}), 0);
}

/// x [1, heads, keys, dim] → [1, heads, keys, count]
array last_dimensions(const array& x, uint32_t count) {
  mx::Shape begin(4, 0);
  begin[3] = x.shape(3) - static_cast<int>(count);
  return mx::slice(x, begin, x.shape());
}

/// Which of these positions each of the row's tokens sees: [tokens, size].
array window_mask(const StepRow& row, Span span, uint32_t window) {
  std::vector<uint8_t> mask;
  for (uint32_t p = row.start; p < row.start + row.tokens.size(); ++p)
    for (uint32_t key = span.from; key < span.to; ++key)
      mask.push_back(key <= p && (window == 0 || p - key < window));
  return from_host(mask.data(),
                   {static_cast<int>(row.tokens.size()), static_cast<int>(span.size())}, mx::bool_);
}

/// MLX's attention has no cap on scores: q [1, heads, tokens, dim], k [1, kv_heads, keys, dim]
/// and v [1, kv_heads, keys, value_dim].
array attend_capped(const array& q,
                    const array& k,
                    const array& v,
                    const std::optional<array>& mask,
                    const AttentionShape& shape) {
  const int kv_heads = k.shape(1), tokens = q.shape(2), dim = q.shape(3);
  const array grouped = mx::reshape(q, {kv_heads, q.shape(1) / kv_heads, tokens, dim});
  const array keys = mx::expand_dims(mx::squeeze(k, 0), 1), values = mx::squeeze(v, 0);
  const array scores = mx::multiply(
      mx::astype(mx::matmul(grouped, mx::swapaxes(keys, -1, -2)), mx::float32), array(shape.scale));
  const array cap(shape.softcap);
  array capped = mx::multiply(mx::tanh(mx::divide(scores, cap)), cap);
  if (mask) capped = mx::where(*mask, capped, array(-std::numeric_limits<float>::infinity()));
  const array weights = mx::astype(mx::softmax(capped, -1), v.dtype());
  return mx::reshape(mx::matmul(weights, mx::expand_dims(values, 1)),
                     {1, q.shape(1), tokens, values.shape(2)});
}

array attend_row(const Pool& pool,
                 const array& pages,
                 const array& q,
                 const StepRow& row,
                 const AttentionShape& shape,
                 const std::optional<array>& chosen) {
  const Span span = seen_by(row, shape.window);
  const Span listed = span - first_of(row, pool.group);
  const array k = gather_row(pool.keys, pages, listed, shape);
  const array v = pool.is_latent() ? last_dimensions(k, pool.shape.latent_dim)
                                   : gather_row(pool.values, pages, listed, shape);
  const array queries = mx::expand_dims(mx::transpose(q, {1, 0, 2}), 0);
  const bool is_single = row.tokens.size() == 1;
  if (shape.softcap > 0) {
    std::optional<array> seen;
    if (!is_single) seen = window_mask(row, span, shape.window);
    const array capped = attend_capped(queries, k, v, seen, shape);
    return mx::reshape(mx::transpose(mx::squeeze(capped, 0), {1, 0, 2}), {q.shape(0), -1});
  }
  const bool is_cut = shape.window != 0 && span.size() > shape.window;
  const std::string mode = is_single ? "" : is_cut ? "array" : "causal";
  std::optional<array> mask;
  if (!is_single && is_cut) mask = window_mask(row, span, shape.window);
  if (chosen) mask = chosen;
  std::optional<array> sinks;
  if (!shape.sinks.empty()) sinks = mx::astype(from_host(shape.sinks), queries.dtype());
  const array out = mx::fast::scaled_dot_product_attention(queries, k, v, shape.scale,
                                                           mask ? "" : mode, mask, sinks);
  return mx::reshape(mx::transpose(mx::squeeze(out, 0), {1, 0, 2}), {q.shape(0), -1});
}

/// A new order that waits for `read`: data flows, so no device can start the next write before.
array after(const array& read) {
  return mx::astype(mx::reshape(mx::slice(read, {0, 0}, {1, 1}), {1}), mx::uint32);
}

}  // namespace

bool is_regular(const AttentionShape& shape) {
  if (shape.heads % shape.kv_heads != 0) return false;
  const uint32_t group = shape.heads / shape.kv_heads;
  for (uint32_t h = 0; h < shape.heads; ++h)
    if (shape.kv_of_head[h] != h / group) return false;
  return true;
}

array rotate(const array& x, const Rope& rope, const Step& step) {
  const auto& [cosine, sine] = step.rope_arrays(rope);
  const int pairs = cosine.shape(2);
  const int tokens = x.shape(0), heads = x.shape(1), dim = x.shape(2);
  const array all = mx::astype(x, mx::float32);
  const array head = mx::slice(all, {0, 0, 0}, {tokens, heads, 2 * pairs});
  // [tokens, heads, pairs, 2] or [tokens, heads, 2, pairs], by how pairs lie.
  const int axis = rope.interleaved ? 3 : 2;
  const mx::Shape split =
      rope.interleaved ? mx::Shape{tokens, heads, pairs, 2} : mx::Shape{tokens, heads, 2, pairs};
  const array both = mx::reshape(head, split);
  const array a = mx::take(both, 0, axis);
  const array b = mx::take(both, 1, axis);
  const array rotated_a = mx::subtract(mx::multiply(a, cosine), mx::multiply(b, sine));
  const array rotated_b = mx::add(mx::multiply(b, cosine), mx::multiply(a, sine));
  const array rotated = mx::reshape(mx::stack({rotated_a, rotated_b}, axis), head.shape());
  if (2 * pairs == dim) return mx::astype(rotated, x.dtype());
  const array rest = mx::slice(all, {0, 0, 2 * pairs}, {tokens, heads, dim});
  return mx::astype(mx::concatenate({rotated, rest}, 2), x.dtype());
}

array attend_plain(Pool& pool,
                   const QueryKeyValue& x,
                   const AttentionShape& shape,
                   const Step& step,
                   const ChosenKeys* chosen) {
  const int tokens = x.q.shape(0), dim = static_cast<int>(shape.head_dim);
  array queries = mx::reshape(x.q, {tokens, -1, dim});
  if (shape.rope) queries = rotate(queries, *shape.rope, step);
  if (!shape.only_reads) {
    array keys = mx::reshape(x.k, {tokens, -1, dim});
    if (shape.rope) keys = rotate(keys, *shape.rope, step);
    write(pool, mx::reshape(keys, x.k.shape()), x.v, step);
  }
  if (shape.query_scale.beta != 0) queries = scale_queries(queries, shape.query_scale, step);
  // After a read an order is any number, and ordered() takes 0.
  const array order = shape.only_reads ? mx::multiply(pool.order, array(0U)) : pool.order;
  const array pages = ordered(step.page_array(pool.group), order);
  queries = mx::astype(queries, pool.keys.dtype());
  std::vector<array> parts;
  int at = 0, page = 0;
  size_t r = 0;
  for (const StepRow& row : step.rows()) {
    const int end = at + static_cast<int>(row.tokens.size());
    const int last_page = page + static_cast<int>(pages_of(row, pool.group).size());
    const array part = mx::slice(queries, {at, 0, 0}, {end, queries.shape(1), dim});
    const array listed = mx::slice(pages, {page}, {last_page});
    const std::optional<array> taken = chosen == nullptr ? std::nullopt : chosen->of_rows[r++];
    parts.push_back(taken && chosen->has_blocks()
                        ? attend_blocks(pool, listed, part, row, shape, *taken, chosen->block)
                        : attend_row(pool, listed, part, row, shape, taken));
    at = end;
    page = last_page;
  }
  const array out =
      mx::astype(parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0), x.q.dtype());
  pool.order = after(out);
  return out;
}

}  // namespace tandem::tensor
