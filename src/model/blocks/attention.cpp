#include "model/blocks/attention.h"

#include <cmath>

#include "tensor/activation.h"

namespace tandem::model {
namespace {

topology::Range times(topology::Range heads, uint32_t head_dim) {
  return {heads.begin * head_dim, heads.end * head_dim};
}

topology::Range after(uint32_t before, topology::Range range) {
  return {before + range.begin, before + range.end};
}

/// Runs of head_dim rows, every other one from `first` on: what a gated q_proj has of each head.
tensor::MatrixSource every_other(const Weights& w, const Config& c, uint32_t first) {
  tensor::MatrixSource out{w, {}};
  for (uint32_t head = w.part().heads.begin; head < w.part().heads.end; ++head)
    out.more.push_back(times({2 * head + first, 2 * head + first + 1}, c.head_dim));
  out.rows = out.more.front();
  out.more.erase(out.more.begin());
  return out;
}

/// The rows of this rank's heads.
std::vector<tensor::MatrixSource> sources_of(const Weights& w,
                                             const Config& c,
                                             const AttentionOptions& options) {
  const auto heads = times(w.part().heads, c.head_dim);
  const auto kv_heads = times(w.part().kv_heads, c.head_dim);
  const Weights q_proj = w / "q_proj";
  if (options.is_gated)
    return {every_other(q_proj, c, 0),
            {w / "k_proj", kv_heads},
            {w / "v_proj", kv_heads},
            every_other(q_proj, c, 1)};
  if (options.fused == nullptr)
    return {{q_proj, heads}, {w / "k_proj", kv_heads}, {w / "v_proj", kv_heads}};
  const Weights all = w / options.fused;
  const uint32_t q = c.heads * c.head_dim, k = c.kv_heads * c.head_dim;
  return {{all, heads}, {all, after(q, kv_heads)}, {all, after(q + k, kv_heads)}};
}

tensor::AttentionShape shape_of(const Weights& w,
                                const Config& c,
                                const AttentionOptions& options) {
  const topology::Part& part = w.part();
  return {.heads = part.heads.size(),
          .kv_heads = part.kv_heads.size(),
          .head_dim = c.head_dim,
          .kv_of_head = topology::kv_of_head(w.shape(), part),
          .scale = static_cast<float>(c.attention_scale != 0 ? c.attention_scale
                                                             : 1.0 / std::sqrt(c.head_dim)),
          .window = options.window,
          .softcap = static_cast<float>(c.attention_softcap),
          .sinks = options.has_sinks ? w.vector("sinks", part.heads) : std::vector<float>(),
          .query_scale = c.query_scale,
          .rope = !options.has_rope                      ? nullptr
                  : options.window != 0 && c.window_rope ? c.window_rope
                                                         : c.rope};
}

/// The key columns of this rank that no earlier rank holds.
topology::Range counted_keys(const Weights& w, const Config& c) {
  const uint32_t group = c.heads / c.kv_heads;
  const topology::Range heads = w.part().heads;
  return times({(heads.begin + group - 1) / group, (heads.end + group - 1) / group}, c.head_dim);
}

}  // namespace

Attention::Attention(const Weights& w, const Config& c, AttentionOptions options)
    : context_(w.context()),
      shape_(shape_of(w, c, options)),
      norms_all_heads_(options.qk_norm && options.norms_all_heads),
      out_(w / options.names.out,
           c.hidden,
           c.heads * c.head_dim,
           times(w.part().heads, c.head_dim)) {
  if (shape_.heads == 0) {
    w.skip();
    return;
  }
  qkv_.emplace(sources_of(w, c, options), c.hidden);
  if (options.qk_norm) load_norms(w, c, options);
}

void Attention::load_norms(const Weights& w, const Config& c, const AttentionOptions& options) {
  const Weights q = w / options.names.q_norm, k = w / options.names.k_norm;
  const double eps = *options.qk_norm;
  if (norms_all_heads_) {
    const topology::Range heads = times(w.part().heads, c.head_dim);
    q_all_norm_.emplace(q, eps, tensor::SplitRmsNorm::Columns{c.heads * c.head_dim, heads, heads});
    k_all_norm_.emplace(
        k, eps,
        tensor::SplitRmsNorm::Columns{c.kv_heads * c.head_dim, times(w.part().kv_heads, c.head_dim),
                                      counted_keys(w, c)});
  } else {
    q_norm_.emplace(q, eps, c.norm_offset);
    k_norm_.emplace(k, eps, c.norm_offset);
  }
}

std::pair<array, array> Attention::normed(const array& q, const array& k) const {
  if (norms_all_heads_) {
    const array sums =
        tensor::SplitRmsNorm::sums_of_squares({{*q_all_norm_, q}, {*k_all_norm_, k}});
    return {(*q_all_norm_)(q, sums, 0), (*k_all_norm_)(k, sums, 1)};
  }
  return {q_norm_ ? (*q_norm_)(q) : q, k_norm_ ? (*k_norm_)(k) : k};
}

array Attention::operator()(const array& x, kv::Layer* kv, const Step& step) const {
  if (!qkv_ && norms_all_heads_)
    return out_.sum_of_others(tensor::SplitRmsNorm::sums_of_others(context_, x, 2));
  if (!qkv_) return out_.sum_of_others(x);
  const auto qkv = (*qkv_)(x);
  const auto [q, k] = normed(qkv[0], qkv[1]);
  const array read = kv->attend({.q = q, .k = k, .v = qkv[2]}, shape_, step, context_);
  const bool is_gated = qkv.size() > 3;
  return out_(is_gated ? tensor::gated(context_, tensor::Gate::kSigmoid, qkv[3], read) : read);
}

}  // namespace tandem::model
