#include "model/blocks/channel_delta.h"

#include "tensor/activation.h"
#include "tensor/gather.h"

namespace tandem::model {
namespace {

using tensor::Weights;
using topology::Range;

Weights channel_conv(const Weights& w, const char* published, const char* usual) {
  const Weights found = w / published;
  return found.has("weight") ? found : w / usual / "conv";
}

}  // namespace

uint32_t ChannelDelta::state_floats(const Config& c, const topology::Part& part) {
  const tensor::DeltaShape own = c.delta.with(c.delta.heads_in(part.channels));
  return (c.conv_taps - 1) * own.qkv() + own.state_floats();
}

ChannelDelta::ChannelDelta(const Weights& w, const Config& c)
    : context_(w.context()), out_(w / "o_proj", c.hidden, c.delta.values(), w.part().channels) {
  if (w.part().channels.empty())
    w.skip();
  else
    load(w, c);
}

void ChannelDelta::load(const Weights& w, const Config& c) {
  const Range columns = w.part().channels, narrow = {0, c.delta.key_dim};
  const tensor::DeltaHeads own = c.delta.heads_in(columns);
  in_.emplace(std::vector<tensor::MatrixSource>{{w / "q_proj", columns},
                                                {w / "k_proj", columns},
                                                {w / "v_proj", columns},
                                                {w / "f_a_proj", narrow},
                                                {w / "g_a_proj", narrow},
                                                {w / "b_proj", own.value_heads}},
              c.hidden);
  decay_.emplace(w / "f_b_proj", narrow.size(), columns);
  gate_.emplace(w / "g_b_proj", narrow.size(), columns);
  conv_.emplace(
      std::vector<Weights>{channel_conv(w, "q_conv1d", "q_conv"),
                           channel_conv(w, "k_conv1d", "k_conv"),
                           channel_conv(w, "v_conv1d", "v_conv")},
      tensor::ConvShape{
          .taps = c.conv_taps, .channels = {columns, columns, columns}, .has_silu = true});
  delta_.emplace(w, c.delta.with(own), own.value_heads);
  norm_.emplace(w / "o_norm", c.rms_eps);
}

tensor::array ChannelDelta::operator()(const tensor::array& x,
                                       kv::Layer* kv,
                                       const tensor::Step& step) const {
  if (!in_) return out_.sum_of_others(x);
  const auto in = (*in_)(x);
  const tensor::StatePart inputs = {.offset = 0, .floats = conv_->state_floats()};
  const tensor::StatePart heads = {.offset = inputs.floats, .floats = delta_->state_floats()};
  const tensor::array joined = tensor::join_columns(context_, {in[0], in[1], in[2]});
  const tensor::array qkv = (*conv_)(kv->states(), inputs, {.x = joined}, step);
  const tensor::array read =
      (*delta_)(kv->states(), heads, {.qkv = qkv, .a = (*decay_)(in[3]), .b = in[5]}, step);
  return out_(tensor::gated(context_, tensor::Gate::kSigmoid, (*gate_)(in[4]), (*norm_)(read)));
}

}  // namespace tandem::model
