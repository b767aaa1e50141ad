#include "model/blocks/mlp.h"

#include "tensor/activation.h"

namespace tandem::model {

using topology::Range;

SwiGlu::SwiGlu(const tensor::Weights& w, const Config& c, MlpNames names)
    : SwiGlu(w, c, c.mlp, w.part().mlp, names) {}

SwiGlu::SwiGlu(const tensor::Weights& w,
               const Config& c,
               uint32_t width,
               Range columns,
               MlpNames names,
               float limit)
    : context_(w.context()),
      gate_(c.gate),
      limit_(limit),
      down_(w / names.down, c.hidden, width, columns) {
  if (columns.empty()) {
    w.skip();
    return;
  }
  const tensor::Weights fused = w / "gate_up_proj";
  const Range up = {width + columns.begin, width + columns.end};
  using Sources = std::vector<tensor::MatrixSource>;
  gate_up_.emplace(fused.has("weight")
                       ? Sources{{fused, columns}, {fused, up}}
                       : Sources{{w / names.gate, columns}, {w / names.up, columns}},
                   c.hidden);
}

tensor::array SwiGlu::inside(const tensor::array& x) const {
  const auto gate_up = (*gate_up_)(x);
  return tensor::gated(context_, gate_, gate_up[0], gate_up[1], limit_);
}

tensor::array SwiGlu::operator()(const tensor::array& x) const {
  return gate_up_ ? down_(inside(x)) : down_.sum_of_others(x);
}

}  // namespace tandem::model
