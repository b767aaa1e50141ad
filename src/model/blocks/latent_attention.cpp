#include "model/blocks/latent_attention.h"

#include "tensor/gather.h"
#include "tensor/head_weights.h"

namespace tandem::model {
namespace {

using tensor::array;
using tensor::MappedMatrix;
using tensor::Weights;
using topology::Range;

Range columns_of(Range heads, uint32_t width) { return {heads.begin * width, heads.end * width}; }

tensor::AttentionShape latent_shape(const Weights& w, const Config& c) {
  const uint32_t heads = w.part().heads.size();
  return {.heads = heads,
          .kv_heads = 1,
          .head_dim = c.latent.key(),
          .latent_dim = c.latent.rank,
          .kv_of_head = std::vector<uint32_t>(heads, 0),
          .scale = static_cast<float>(c.attention_scale),
          .query_scale = c.query_scale,
          .rope = c.rope};
}

}  // namespace

LatentAttention::LatentAttention(const Weights& w, const Config& c, const Options& options)
    : context_(w.context()),
      shape_(latent_shape(w, c)),
      rope_(c.latent.rope),
      index_(options.index),
      out_(
          w / options.out, c.hidden, c.heads * c.head_dim, columns_of(w.part().heads, c.head_dim)) {
  if (shape_.heads == 0) {
    w.skip();
    return;
  }
  load_queries(w, c);
  load_latent_norm(w / "kv_a_layernorm", c.latent);
  load_heads(w, c);
  if (c.latent.choice_heads > 0) load_choice(w / "indexer", c);
}

void LatentAttention::load_latent_norm(const Weights& w, const LatentDims& dims) {
  if (dims.scale == 1) {
    latent_norm_.emplace(w, dims.eps);
    return;
  }
  std::vector<float> weight = w.vector("weight");
  for (float& each : weight) each *= static_cast<float>(dims.scale);
  latent_norm_.emplace(context_, std::move(weight), dims.eps);
}

void LatentAttention::load_choice(const Weights& w, const Config& c) {
  const LatentDims& dims = c.latent;
  constexpr double kEps = 1e-6;
  choice_.emplace(
      Choice{.query = {w / "wq_b", dims.query_rank, {0, dims.choice_heads * dims.choice_dim}},
             .key_and_weights = {{{w / "wk", {0, dims.choice_dim}},
                                  {w / "weights_proj", {0, dims.choice_heads}}},
                                 c.hidden},
             .key_norm = {w / "k_norm", kEps},
             .shape = {.heads = dims.choice_heads,
                       .dim = dims.choice_dim,
                       .top_k = dims.choice_top_k,
                       .rope = c.choice_rope}});
}

void LatentAttention::load_queries(const Weights& w, const Config& c) {
  const LatentDims& dims = c.latent;
  const Range heads = columns_of(w.part().heads, dims.plain + dims.rope);
  const Weights kept = w / "kv_a_proj_with_mqa";
  const tensor::MatrixSource rope = {kept, {dims.rank, dims.rank + dims.rope}};
  const tensor::MatrixSource latent = {kept, {0, dims.rank}};
  if (dims.query_rank == 0) {
    input_.emplace(std::vector<tensor::MatrixSource>{{w / "q_proj", heads}, rope, latent},
                   c.hidden);
    return;
  }
  input_.emplace(
      std::vector<tensor::MatrixSource>{{w / "q_a_proj", {0, dims.query_rank}}, rope, latent},
      c.hidden);
  query_norm_.emplace(w / "q_a_layernorm", dims.eps);
  query_.emplace(w / "q_b_proj", dims.query_rank, heads);
}

void LatentAttention::load_heads(const Weights& w, const Config& c) {
  const LatentDims& dims = c.latent;
  const Range heads = w.part().heads;
  const Weights both = w / "kv_b_proj", embed = w / "embed_q", unembed = w / "unembed_out";
  if (!both.has("weight")) {
    embed_.emplace(embed, stacked_heads(embed, heads, dims.rank, dims.plain));
    unembed_.emplace(unembed, stacked_heads(unembed, heads, c.head_dim, dims.rank));
    return;
  }
  const uint32_t stride = dims.plain + c.head_dim;
  std::vector<MappedMatrix> keys = row_heads(both, heads, {stride, {0, dims.plain}}, dims.rank);
  for (MappedMatrix& key : keys) key = turned(both, key);
  embed_.emplace(both, keys);
  unembed_.emplace(both, row_heads(both, heads, {stride, {dims.plain, stride}}, dims.rank));
}

array LatentAttention::operator()(const array& x, kv::Layer* kv, const tensor::Step& step) const {
  if (!input_) return out_.sum_of_others(x);
  const auto parts = (*input_)(x);
  const array query = query_ ? (*query_norm_)(parts[0]) : parts[0];
  const array heads = query_ ? (*query_)(query) : parts[0];
  const array queries = (*embed_)(heads, rope_);
  const array keys = join_columns(context_, {parts[1], (*latent_norm_)(parts[2])});
  std::optional<tensor::ChosenKeys> chosen;
  if (choice_) {
    const auto key_and_weights = choice_->key_and_weights(x);
    chosen = kv->choose({.q = choice_->query(query),
                         .k = choice_->key_norm(key_and_weights[0]),
                         .weights = key_and_weights[1]},
                        choice_->shape, step, context_);
  }
  const array found = kv->attend({.q = queries, .k = keys, .v = keys}, shape_, step, context_,
                                 chosen ? &*chosen : nullptr, index_);
  return out_((*unembed_)(found));
}

}  // namespace tandem::model
