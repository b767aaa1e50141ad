#include "model/blocks/short_conv.h"

namespace tandem::model {

ShortConv::ShortConv(const tensor::Weights& w, const Config& c)
    : out_(w / "out_proj", c.hidden, c.hidden, w.part().channels) {
  const topology::Range channels = w.part().channels;
  if (channels.empty()) {
    w.skip();
    return;
  }
  std::vector<tensor::MatrixSource> sources;
  for (uint32_t first = 0; first < 3 * c.hidden; first += c.hidden)
    sources.push_back({w / "in_proj", {first + channels.begin, first + channels.end}});
  in_.emplace(sources, c.hidden);
  conv_.emplace(w / "conv", tensor::ConvShape{.taps = c.conv_taps, .channels = {channels}});
}

tensor::array ShortConv::operator()(const tensor::array& x,
                                    kv::Layer* kv,
                                    const tensor::Step& step) const {
  if (!in_) return out_.sum_of_others(x);
  const auto bcx = (*in_)(x);
  const tensor::StatePart part = {.offset = 0, .floats = conv_->state_floats()};
  return out_(
      (*conv_)(kv->states(), part, {.x = bcx[2], .gate = bcx[0], .out_gate = bcx[1]}, step));
}

}  // namespace tandem::model
