#include "model/blocks/mlp.h"

#include "tensor/activation.h"

namespace tandem::model {

SwiGlu::SwiGlu(const tensor::Weights& w, const Config& c)
    : context_(w.context()), gate_(c.gate), down_(w / "down_proj", c.hidden, c.mlp, w.part().mlp) {
  const topology::Range columns = w.part().mlp;
  if (columns.empty()) {
    w.skip();
    return;
  }
  gate_up_.emplace(
      std::vector<tensor::MatrixSource>{{w / "gate_proj", columns}, {w / "up_proj", columns}},
      c.hidden);
}

tensor::array SwiGlu::operator()(const tensor::array& x) const {
  if (!gate_up_) return down_.sum_of_others(x);
  const auto gate_up = (*gate_up_)(x);
  return down_(tensor::gated(context_, gate_, gate_up[0], gate_up[1]));
}

}  // namespace tandem::model
