#include "model/blocks/ssd.h"

#include "tensor/activation.h"

namespace tandem::model {
namespace {

using topology::Range;

/// Rows of some heads, `width` of each, where those of all heads begin at `first`.
Range rows_of_heads(Range heads, uint32_t width, uint32_t first) {
  return {first + heads.begin * width, first + heads.end * width};
}

/// C, B and x of a rank, in the order of the rule's q, k and v, among rows of which x, B and C of
/// all heads begin at `first`.
std::vector<Range> cbx_runs(const tensor::DeltaShape& all,
                            const tensor::DeltaHeads& own,
                            uint32_t first) {
  const uint32_t b = first + all.values(), c = b + all.keys();
  return {rows_of_heads(own.key_heads, all.key_dim, c),
          rows_of_heads(own.key_heads, all.key_dim, b),
          rows_of_heads(own.value_heads, all.value_dim, first)};
}

}  // namespace

uint32_t SsdMixer::state_floats(const Config& c, const topology::Part& part) {
  const tensor::DeltaShape own = c.delta.with(c.delta.heads_in(part.channels));
  return (c.conv_taps - 1) * own.qkv() + own.state_floats();
}

SsdMixer::SsdMixer(const tensor::Weights& w, const Config& c)
    : context_(w.context()),
      norms_groups_(c.delta.key_heads > 1),
      out_(w / "out_proj", c.hidden, c.delta.values(), w.part().channels) {
  if (w.part().channels.empty())
    w.skip();
  else
    load(w, c);
}

void SsdMixer::load(const tensor::Weights& w, const Config& c) {
  const tensor::DeltaShape& all = c.delta;
  const Range columns = w.part().channels;
  const tensor::DeltaHeads own = all.heads_in(columns);
  const auto cbx = cbx_runs(all, own, all.values());
  const tensor::Weights in = w / "in_proj";
  in_.emplace(
      std::vector<tensor::MatrixSource>{
          {in, columns},
          {in, cbx[0], {cbx[1], cbx[2]}},
          {in, rows_of_heads(own.value_heads, 1, 2 * all.values() + 2 * all.keys())}},
      c.hidden);
  conv_.emplace(
      w / "conv1d",
      tensor::ConvShape{.taps = c.conv_taps, .channels = cbx_runs(all, own, 0), .has_silu = true});
  ssd_.emplace(w, all.with(own), own.value_heads);
  if (norms_groups_)
    group_norm_.emplace(
        w / "norm", c.rms_eps,
        tensor::RmsNorm::Groups{
            .all = all.values(), .here = columns, .width = all.group() * all.value_dim});
  else
    all_norm_.emplace(
        w / "norm", c.rms_eps,
        tensor::SplitRmsNorm::Columns{.all = all.values(), .here = columns, .counted = columns});
}

tensor::array SsdMixer::normed(const tensor::array& x) const {
  if (group_norm_) return (*group_norm_)(x);
  return (*all_norm_)(x, tensor::SplitRmsNorm::sums_of_squares({{*all_norm_, x}}), 0);
}

tensor::array SsdMixer::operator()(const tensor::array& x,
                                   kv::Layer* kv,
                                   const tensor::Step& step) const {
  if (!in_)
    return out_.sum_of_others(norms_groups_ ? x
                                            : tensor::SplitRmsNorm::sums_of_others(context_, x, 1));
  const auto in = (*in_)(x);
  const tensor::array &z = in[0], &dt = in[2];
  const tensor::StatePart inputs = {.offset = 0, .floats = conv_->state_floats()};
  const tensor::StatePart heads = {.offset = inputs.floats, .floats = ssd_->state_floats()};
  const tensor::array cbx = (*conv_)(kv->states(), inputs, {.x = in[1]}, step);
  const tensor::array read = (*ssd_)(kv->states(), heads, {.qkv = cbx, .a = dt}, step);
  return out_(normed(tensor::gated(context_, tensor::Gate::kSilu, z, read)));
}

}  // namespace tandem::model
