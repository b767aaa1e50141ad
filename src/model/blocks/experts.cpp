#include "model/blocks/experts.h"

#include "tensor/gather.h"

namespace tandem::model {

ExpertMlp::ExpertMlp(const tensor::Weights& w, const Config& c) : context_(w.context()) {
  const topology::Range columns = w.part().expert_mlp;
  if (columns.empty()) {
    w.skip();
    return;
  }
  router_.emplace(w / "gate", c.hidden, topology::Range{0, c.experts});
  experts_.emplace(w,
                   tensor::ExpertsShape{.hidden = c.hidden,
                                        .width = c.expert_mlp,
                                        .experts = c.experts,
                                        .top_k = c.experts_of_token,
                                        .renormalizes = c.renormalizes_experts},
                   columns);
}

tensor::array ExpertMlp::operator()(const tensor::array& x) const {
  const tensor::array part =
      experts_ ? (*experts_)(x, (*router_)(x))
               : tensor::zeros_after(context_, x, static_cast<uint32_t>(x.shape(1)));
  return tensor::all_sum(context_, part);
}

}  // namespace tandem::model
