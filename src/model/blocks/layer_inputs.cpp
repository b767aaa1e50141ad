#include "model/blocks/layer_inputs.h"

#include <cmath>
#include <numbers>

#include "tensor/activation.h"
#include "tensor/gather.h"

namespace tandem::model {

using tensor::array;

namespace {

/// The columns of this rank's layers among those of all.
topology::Range layer_columns(const tensor::Weights& w, uint32_t width) {
  const topology::Range layers = w.part().layers;
  return {layers.begin * width, layers.end * width};
}

}  // namespace

LayerInputs::LayerInputs(const tensor::Weights& body, const Config& c)
    : context_(body.context()),
      width_(c.layer_inputs),
      hidden_(c.hidden),
      table_(body / "embed_tokens_per_layer",
             c.layers * c.layer_inputs,
             body.part().vocab,
             layer_columns(body, c.layer_inputs)),
      projection_(
          body / "per_layer_model_projection", c.hidden, layer_columns(body, c.layer_inputs)),
      norm_(body / "per_layer_projection_norm", c.rms_eps) {}

std::vector<array> LayerInputs::operator()(const array& embedded, const tensor::Step& step) const {
  const auto times = [&](const array& x, double factor) {
    return tensor::scaled(context_, x, static_cast<float>(factor));
  };
  const array projected = norm_(times(projection_(embedded), 1 / std::sqrt(hidden_)));
  const array looked_up = times(table_(step), std::sqrt(width_));
  const array both = times(projected + looked_up, 1 / std::numbers::sqrt2);
  return tensor::split_columns(context_, both, width_);
}

}  // namespace tandem::model
