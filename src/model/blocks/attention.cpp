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

topology::HeadPart heads_of(const Weights& w, const AttentionOptions& options) {
  return topology::heads_of(w.shape(), w.part(), options.window != 0);
}

/// All query heads' columns, and this rank's.
uint32_t query_width(const topology::HeadPart& p) { return p.whole.heads * p.whole.head_dim; }
topology::Range query_columns(const topology::HeadPart& p) {
  return times(p.heads, p.whole.head_dim);
}

/// All columns of what query heads have read, and this rank's.
uint32_t read_width(const topology::HeadPart& p) { return p.whole.heads * p.whole.values(); }
topology::Range read_columns(const topology::HeadPart& p) {
  return times(p.heads, p.whole.values());
}

/// Runs of head_dim rows, every other one from `first` on: what a gated q_proj has of each head.
tensor::MatrixSource every_other(const Weights& w, const topology::HeadPart& part, uint32_t first) {
  tensor::MatrixSource out{w, {}};
  for (uint32_t head = part.heads.begin; head < part.heads.end; ++head)
    out.more.push_back(times({2 * head + first, 2 * head + first + 1}, part.whole.head_dim));
  out.rows = out.more.front();
  out.more.erase(out.more.begin());
  return out;
}

/// The rows of this rank's heads: of queries, keys, values and gates, where a layer has them.
std::vector<tensor::MatrixSource> sources_of(const Weights& w, const AttentionOptions& options) {
  const topology::HeadPart part = heads_of(w, options);
  const auto heads = query_columns(part), keys = times(part.kv_heads, part.whole.head_dim);
  const auto values = times(part.kv_heads, part.whole.values());
  if (options.fused != nullptr) {
    const Weights all = w / options.fused;
    const uint32_t q = query_width(part), k = part.whole.kv_heads * part.whole.head_dim;
    return {{all, heads}, {all, after(q, keys)}, {all, after(q + k, values)}};
  }
  const Weights q_proj = w / "q_proj";
  if (options.is_gated)
    return {every_other(q_proj, part, 0),
            {w / "k_proj", keys},
            {w / "v_proj", values},
            every_other(q_proj, part, 1)};
  std::vector<tensor::MatrixSource> out = {{q_proj, heads}};
  if (options.only_reads) return out;
  out.push_back({w / "k_proj", keys});
  if (!options.has_equal_kv) out.push_back({w / "v_proj", values});
  return out;
}

tensor::AttentionShape shape_of(const Weights& w,
                                const Config& c,
                                const AttentionOptions& options) {
  const topology::HeadPart part = heads_of(w, options);
  const uint32_t head_dim = part.whole.head_dim;
  return {
      .heads = part.heads.size(),
      .kv_heads = part.kv_heads.size(),
      .head_dim = head_dim,
      .value_dim = part.whole.value_dim,
      .kv_of_head = topology::kv_of_head(part),
      .scale = static_cast<float>(c.attention_scale != 0 ? c.attention_scale
                                                         : 1.0 / std::sqrt(head_dim)),
      .window = options.window,
      .softcap = static_cast<float>(c.attention_softcap),
      .sinks = options.has_sinks ? w.vector(options.names.sinks, part.heads) : std::vector<float>(),
      .query_scale = c.query_scale,
      .only_reads = options.only_reads,
      .rope = !options.has_rope                      ? nullptr
              : options.window != 0 && c.window_rope ? c.window_rope
                                                     : c.rope};
}

/// The key columns of this rank that no earlier rank holds.
topology::Range counted_keys(const topology::HeadPart& part) {
  const uint32_t group = part.whole.heads / part.whole.kv_heads;
  const topology::Range heads = part.heads;
  return times({(heads.begin + group - 1) / group, (heads.end + group - 1) / group},
               part.whole.head_dim);
}

}  // namespace

Attention::Attention(const Weights& w, const Config& c, AttentionOptions options)
    : context_(w.context()),
      shape_(shape_of(w, c, options)),
      norms_all_heads_(options.qk_norm && options.norms_all_heads),
      out_(w / options.names.out,
           c.hidden,
           read_width(heads_of(w, options)),
           read_columns(heads_of(w, options))),
      value_scale_(static_cast<float>(c.value_scale)) {
  if (shape_.heads == 0) {
    w.skip();
    return;
  }
  qkv_.emplace(sources_of(w, options), c.hidden);
  if (options.only_reads)
    for (const char* unused : {"k_proj", "v_proj", options.names.k_norm}) (w / unused).skip();
  if (options.norms_values && !options.only_reads)
    v_norm_.emplace(context_, heads_of(w, options).whole.values(), c.rms_eps);
  if (options.head_gate != nullptr)
    head_gate_.emplace(w / options.head_gate, c.hidden, heads_of(w, options).heads);
  if (options.is_sparse) choice_.emplace(w, c);
  if (options.qk_norm) load_norms(w, c, options);
}

void Attention::load_norms(const Weights& w, const Config& c, const AttentionOptions& options) {
  const Weights q = w / options.names.q_norm, k = w / options.names.k_norm;
  const double eps = *options.qk_norm;
  if (norms_all_heads_) {
    const topology::HeadPart part = heads_of(w, options);
    const uint32_t head_dim = part.whole.head_dim;
    const topology::Range heads = query_columns(part), kv_heads = times(part.kv_heads, head_dim);
    q_all_norm_.emplace(q, eps, tensor::SplitRmsNorm::Columns{query_width(part), heads, heads});
    k_all_norm_.emplace(k, eps,
                        tensor::SplitRmsNorm::Columns{part.whole.kv_heads * head_dim, kv_heads,
                                                      counted_keys(part)});
  } else {
    q_norm_.emplace(q, eps, c.norm_offset);
    if (!options.only_reads) k_norm_.emplace(k, eps, c.norm_offset);
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
  const auto qkv = (*qkv_)(x);  // without v, or without both, in some layers
  if (shape_.only_reads) {
    const array q = q_norm_ ? (*q_norm_)(qkv[0]) : qkv[0];
    return out_(kv->attend({.q = q, .k = q, .v = q}, shape_, step, context_));
  }
  const auto [q, k] = normed(qkv[0], qkv[1]);
  const bool is_gated = qkv.size() > 3;
  const array last = is_gated ? qkv[2] : qkv.back();
  const array v = v_norm_ ? (*v_norm_)(last) : last;
  std::optional<tensor::ChosenKeys> chosen;
  if (choice_) chosen = (*choice_)(x, kv, step);
  const array found =
      kv->attend({.q = q, .k = k, .v = v}, shape_, step, context_, chosen ? &*chosen : nullptr);
  const array read = value_scale_ == 1 ? found : tensor::scaled(context_, found, value_scale_);
  if (is_gated) return out_(tensor::gated(context_, tensor::Gate::kSigmoid, qkv[3], read));
  return out_(head_gate_ ? tensor::times_sigmoid(context_, read, (*head_gate_)(x)) : read);
}

}  // namespace tandem::model
