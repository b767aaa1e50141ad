#include "model/blocks/linear_attention.h"

#include "tensor/activation.h"

namespace tandem::model {
namespace {

using tensor::DeltaShape;
using tensor::MatrixSource;
using tensor::Weights;
using topology::Range;

Range run_of(Range heads, uint32_t width, uint32_t first = 0) {
  return {first + heads.begin * width, first + heads.end * width};
}

/// Rows of q, k and v, each with all of its heads together.
std::vector<Range> qkv_runs(const DeltaShape& all, Range heads) {
  return {run_of(heads, all.key_dim), run_of(heads, all.key_dim, all.keys()),
          run_of(heads, all.group() * all.value_dim, 2 * all.keys())};
}

MatrixSource source(const Weights& module, const std::vector<Range>& runs) {
  return {module, runs.front(), {runs.begin() + 1, runs.end()}};
}

/// Columns [first, first + width) of each key head, whose rows are `all` long together.
std::vector<Range> of_each(Range heads, uint32_t all, uint32_t first, uint32_t width) {
  std::vector<Range> out;
  for (uint32_t h = heads.begin; h < heads.end; ++h)
    out.push_back({h * all + first, h * all + first + width});
  return out;
}

/// qkv, z, b and a where a key head's rows lie together: q, k, v, z, and b, a.
std::vector<MatrixSource> grouped_sources(const Weights& w, const DeltaShape& all, Range heads) {
  const uint32_t k = all.key_dim, v = all.group() * all.value_dim, total = 2 * (k + v);
  std::vector<Range> qkv = of_each(heads, total, 0, k);
  for (const auto& more : {of_each(heads, total, k, k), of_each(heads, total, 2 * k, v)})
    qkv.insert(qkv.end(), more.begin(), more.end());
  const Weights qkvz = w / "in_proj_qkvz", ba = w / "in_proj_ba";
  const uint32_t group = all.group();
  return {source(qkvz, qkv), source(qkvz, of_each(heads, total, 2 * k + v, v)),
          source(ba, of_each(heads, 2 * group, 0, group)),
          source(ba, of_each(heads, 2 * group, group, group))};
}

std::vector<MatrixSource> delta_sources(const Weights& w, const DeltaShape& all, Range heads) {
  if ((w / "in_proj_qkvz").has("weight")) return grouped_sources(w, all, heads);
  const Range value_heads = run_of(heads, all.group());
  return {source(w / "in_proj_qkv", qkv_runs(all, heads)),
          {w / "in_proj_z", run_of(value_heads, all.value_dim)},
          {w / "in_proj_b", value_heads},
          {w / "in_proj_a", value_heads}};
}

uint32_t conv_floats(const Config& c, const DeltaShape& own) {
  return (c.conv_taps - 1) * own.qkv();
}

}  // namespace

uint32_t LinearAttention::state_floats(const Config& c, const topology::Part& part) {
  const DeltaShape own = c.delta.with(c.delta.heads_in(part.channels));
  return conv_floats(c, own) + own.state_floats();
}

LinearAttention::LinearAttention(const Weights& w, const Config& c)
    : context_(w.context()), out_(w / "out_proj", c.hidden, c.delta.values(), w.part().channels) {
  if (w.part().channels.empty())
    w.skip();
  else
    load(w, c);
}

void LinearAttention::load(const Weights& w, const Config& c) {
  const tensor::DeltaHeads own = c.delta.heads_in(w.part().channels);
  const Range heads = own.key_heads;
  in_.emplace(delta_sources(w, c.delta, heads), c.hidden);
  conv_.emplace(w / "conv1d",
                tensor::ConvShape{
                    .taps = c.conv_taps, .channels = qkv_runs(c.delta, heads), .has_silu = true});
  delta_.emplace(w, c.delta.with(own), own.value_heads);
  norm_.emplace(w / "norm", c.rms_eps);
}

tensor::array LinearAttention::operator()(const tensor::array& x,
                                          kv::Layer* kv,
                                          const tensor::Step& step) const {
  if (!in_) return out_.sum_of_others(x);
  const auto in = (*in_)(x);
  const tensor::array &z = in[1], &b = in[2], &a = in[3];
  const tensor::StatePart inputs = {.offset = 0, .floats = conv_->state_floats()};
  const tensor::StatePart heads = {.offset = inputs.floats, .floats = delta_->state_floats()};
  const tensor::array qkv = (*conv_)(kv->states(), inputs, {.x = in[0]}, step);
  const tensor::array read = (*delta_)(kv->states(), heads, {.qkv = qkv, .a = a, .b = b}, step);
  return out_(tensor::gated(context_, tensor::Gate::kSilu, z, (*norm_)(read)));
}

}  // namespace tandem::model
