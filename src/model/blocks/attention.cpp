#include "model/blocks/attention.h"

#include <cmath>

namespace tandem::model {
namespace {

topology::Range times(topology::Range heads, uint32_t head_dim) {
  return {heads.begin * head_dim, heads.end * head_dim};
}

topology::Range after(uint32_t before, topology::Range range) {
  return {before + range.begin, before + range.end};
}

/// The rows of this rank's heads.
std::vector<tensor::MatrixSource> sources_of(const Weights& w,
                                             const Config& c,
                                             const AttentionOptions& options) {
  const auto heads = times(w.part().heads, c.head_dim);
  const auto kv_heads = times(w.part().kv_heads, c.head_dim);
  if (options.fused == nullptr)
    return {{w / "q_proj", heads}, {w / "k_proj", kv_heads}, {w / "v_proj", kv_heads}};
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
          .query_scale = c.query_scale,
          .rope = !options.has_rope                      ? nullptr
                  : options.window != 0 && c.window_rope ? c.window_rope
                                                         : c.rope};
}

}  // namespace

Attention::Attention(const Weights& w, const Config& c, AttentionOptions options)
    : context_(w.context()),
      shape_(shape_of(w, c, options)),
      out_(w / options.names.out,
           c.hidden,
           c.heads * c.head_dim,
           times(w.part().heads, c.head_dim)) {
  if (shape_.heads == 0) {
    w.skip();
    return;
  }
  qkv_.emplace(sources_of(w, c, options), c.hidden);
  if (!options.qk_norm) return;
  q_norm_.emplace(w / options.names.q_norm, *options.qk_norm, c.norm_offset);
  k_norm_.emplace(w / options.names.k_norm, *options.qk_norm, c.norm_offset);
}

array Attention::operator()(const array& x, kv::Layer* kv, const Step& step) const {
  if (!qkv_) return out_.sum_of_others(x);
  const auto qkv = (*qkv_)(x);
  const array q = q_norm_ ? (*q_norm_)(qkv[0]) : qkv[0];
  const array k = k_norm_ ? (*k_norm_)(qkv[1]) : qkv[1];
  return out_(kv->attend({.q = q, .k = k, .v = qkv[2]}, shape_, step, context_));
}

}  // namespace tandem::model
