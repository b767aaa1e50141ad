#include "model/blocks/lightning_attention.h"

#include <bit>
#include <cmath>

#include "tensor/activation.h"
#include "tensor/gather.h"
#include "tensor/rotated.h"

namespace tandem::model {
namespace {

using tensor::Weights;
using topology::Range;

/// Of `heads`, a power of two: 2^(-8 / heads), 2^(-16 / heads), …
double slope_of_power(uint32_t heads, uint32_t head) {
  return std::pow(2.0, -8.0 * (head + 1) / heads);
}

/// Where the number of heads is no power of two, the others have every other slope of the next.
double slope_of(uint32_t heads, uint32_t head) {
  const uint32_t power = std::bit_floor(heads);
  return head < power ? slope_of_power(power, head) : slope_of_power(2 * power, 2 * (head - power));
}

/// The rule of Mamba 2 with steps of one length, which the shape has as its limits and which stands
/// for the scale of queries.
tensor::DeltaParameters decays_of(const Config& c, Range heads, uint32_t index) {
  const double layers = std::max(1U, c.layers - 1), left = 1 - index / layers + 1e-5;
  tensor::DeltaParameters out = {.a_log = {},
                                 .dt_bias = std::vector<float>(heads.size()),
                                 .skip = std::vector<float>(heads.size())};
  for (uint32_t h = heads.begin; h < heads.end; ++h)
    out.a_log.push_back(static_cast<float>(
        std::log(slope_of(c.delta.value_heads, h) * left / double{c.delta.most_dt})));
  return out;
}

Range moved_by(Range rows, uint32_t by) { return {rows.begin + by, rows.end + by}; }

}  // namespace

uint32_t LightningAttention::state_floats(const Config& c, const topology::Part& part) {
  return c.delta.with(c.delta.heads_in(part.channels)).state_floats();
}

LightningAttention::LightningAttention(const Weights& w, const Config& c, uint32_t index)
    : context_(w.context()),
      shape_(c.delta.with(c.delta.heads_in(w.part().channels))),
      norm_groups_(c.read_norm_groups),
      rope_(c.state_rope),
      out_(w / "dense", c.hidden, c.delta.values(), w.part().channels) {
  if (w.part().channels.empty())
    w.skip();
  else
    load(w, c, index);
}

void LightningAttention::load(const Weights& w, const Config& c, uint32_t index) {
  const Range own = w.part().channels;
  const uint32_t all = c.delta.values();
  const Weights qkv = w / "query_key_value";
  in_.emplace(std::vector<tensor::MatrixSource>{{qkv, own},
                                                {qkv, moved_by(own, all)},
                                                {qkv, moved_by(own, 2 * all)},
                                                {w / "g_proj", own}},
              c.hidden);
  if (c.has_qk_norm) {
    query_norm_.emplace(w / "query_layernorm", c.rms_eps);
    key_norm_.emplace(w / "key_layernorm", c.rms_eps);
  }
  sum_.emplace(context_, shape_, decays_of(c, c.delta.heads_in(own).value_heads, index));
  norm_.emplace(w / "g_norm", c.rms_eps,
                tensor::GroupNorm::Columns{.all = all, .groups = norm_groups_, .here = own});
}

tensor::array LightningAttention::operator()(const tensor::array& x,
                                             kv::Layer* kv,
                                             const tensor::Step& step) const {
  if (!in_) return out_.sum_of_others(tensor::GroupNorm::join_others(context_, x, norm_groups_));
  const auto in = (*in_)(x);
  const tensor::array q = query_norm_ ? (*query_norm_)(in[0]) : in[0];
  const tensor::array k = key_norm_ ? (*key_norm_)(in[1]) : in[1];
  const tensor::array qkv = tensor::rotated(context_, tensor::join_columns(context_, {q, k, in[2]}),
                                            2 * shape_.key_heads, shape_.key_dim, *rope_, step);
  const tensor::StatePart heads = {.offset = 0, .floats = sum_->state_floats()};
  const tensor::array read = (*sum_)(kv->states(), heads, {.qkv = qkv}, step);
  return out_(tensor::gated(context_, tensor::Gate::kSigmoid, in[3], (*norm_)(read)));
}

}  // namespace tandem::model
