#include "model/blocks/mlp.h"

#include "tensor/activation.h"
#include "tensor/gather.h"

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
  Sources sources = {{w / names.up, columns}};
  if (fused.has("weight"))
    sources = {{fused, columns}, {fused, up}};
  else if (c.has_mlp_gates)
    sources.insert(sources.begin(), {w / names.gate, columns});
  gate_up_.emplace(sources, c.hidden);
}

tensor::array SwiGlu::inside(const tensor::array& x) const {
  const auto gate_up = (*gate_up_)(x);
  return tensor::gated(context_, gate_, gate_up.front(), gate_up.back(), limit_);
}

tensor::array SwiGlu::operator()(const tensor::array& x) const {
  return gate_up_ ? down_(inside(x)) : down_.sum_of_others(x);
}

tensor::array SwiGlu::part(const tensor::array& x) const {
  return gate_up_ ? down_.part(inside(x))
                  : tensor::zeros_after(context_, x, static_cast<uint32_t>(x.shape(1)));
}

}  // namespace tandem::model
