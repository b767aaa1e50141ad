#include "model/blocks/block_choice.h"

namespace tandem::model {
namespace {

tensor::KeyChoiceShape shape_of(const tensor::Weights& w, const Config& c) {
  return {.heads = w.part().kv_heads.size(),
          .dim = c.sparse.dim,
          .block = c.sparse.block,
          .top_k = c.sparse.top_k,
          .first_blocks = c.sparse.first_blocks,
          .last_blocks = c.sparse.last_blocks,
          .rope = c.rope};
}

std::vector<tensor::MatrixSource> sources_of(const tensor::Weights& w, uint32_t dim) {
  const topology::Range heads = w.part().kv_heads;
  return {{w / "index_q_proj", {heads.begin * dim, heads.end * dim}},
          {w / "index_k_proj", {0, dim}}};
}

}  // namespace

BlockChoice::BlockChoice(const tensor::Weights& w, const Config& c)
    : context_(w.context()),
      shape_(shape_of(w, c)),
      query_and_key_(sources_of(w, c.sparse.dim), c.hidden),
      query_norm_(w / "index_q_norm", c.rms_eps, c.norm_offset),
      key_norm_(w / "index_k_norm", c.rms_eps, c.norm_offset) {}

tensor::ChosenKeys BlockChoice::operator()(const tensor::array& x,
                                           kv::Layer* kv,
                                           const tensor::Step& step) const {
  const auto parts = query_and_key_(x);
  return kv->choose({.q = query_norm_(parts[0]), .k = key_norm_(parts[1])}, shape_, step, context_);
}

}  // namespace tandem::model
