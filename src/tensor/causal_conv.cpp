#include "tensor/causal_conv.h"

#include "kernels/causal_conv.h"
#include "kernels/scalar_type.h"
#include "tensor/dtype.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

/// Some channels of [channels, taps] in the checkpoint into columns of [taps, width], from `first`
/// on.
void put_taps(const Weights& module,
              uint32_t taps,
              topology::Range channels,
              size_t first,
              std::span<float> to) {
  const format::Tensor stored = module.raw("weight", channels);
  int64_t per_channel = 1;
  for (size_t axis = 1; axis < stored.shape.size(); ++axis) per_channel *= stored.shape[axis];
  if (stored.shape.size() < 2 || per_channel != int64_t{taps})
    throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{}: the convolution does not have {} taps",
                                                        module.path(), taps)});
  const kernels::ScalarType type = scalar_type(stored.dtype);
  const size_t width = to.size() / taps;
  for (uint32_t c = 0; c < channels.size(); ++c)
    for (uint32_t tap = 0; tap < taps; ++tap)
      to[tap * width + first + c] =
          kernels::load_scalar(stored.bytes.data(), type, size_t{c} * taps + tap);
}

/// [taps, channels] of this rank.
std::vector<float> load_taps(const std::vector<Weights>& modules, const ConvShape& shape) {
  std::vector<float> out(size_t{shape.taps} * shape.width());
  size_t at = 0;
  for (size_t i = 0; i < modules.size(); ++i) {
    put_taps(modules[i], shape.taps, shape.channels[i], at, out);
    at += shape.channels[i].size();
  }
  modules.front().count_bytes(out.size() * sizeof(float));
  return out;
}

std::vector<float> load_bias(const std::vector<Weights>& modules, const ConvShape& shape) {
  std::vector<float> out;
  for (size_t i = 0; i < modules.size(); ++i) {
    const auto part = modules[i].vector("bias", shape.channels[i]);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

array on_device(const float* values, uint32_t channels, mx::Dtype dtype) {
  array out = mx::astype(from_host(values, {1, static_cast<int>(channels)}, mx::float32), dtype);
  out.eval();
  return out;
}

array token_rows(const array& x, int from, int to) {
  return mx::slice(x, {from, 0}, {to, x.shape(1)});
}

/// A layer's convolution with its arguments bound; rows are the step's of the moment.
struct BoundConv {
  kernels::CausalConvArgs args;
  const Step& step;
  std::shared_ptr<kernels::WorkerPool> workers;
  std::shared_ptr<const std::vector<float>> weight, bias;  // that args points to

  void operator()() const {
    kernels::CausalConvArgs with_rows = args;
    with_rows.rows = step.state_rows();
    kernels::causal_conv(*workers, with_rows);
  }
};

}  // namespace

uint32_t ConvShape::width() const {
  uint32_t out = 0;
  for (const topology::Range range : channels) out += range.size();
  return out;
}

CausalConv::CausalConv(const std::vector<Weights>& modules, const ConvShape& shape)
    : context_(modules.front().context()),
      taps_(shape.taps),
      channels_(shape.width()),
      has_silu_(shape.has_silu),
      weight_(std::make_shared<const std::vector<float>>(load_taps(modules, shape))) {
  if (modules.front().has("bias"))
    bias_ = std::make_shared<const std::vector<float>>(load_bias(modules, shape));
  if (context_.is_fast()) return;
  for (uint32_t tap = 0; tap < taps_; ++tap)
    plain_taps_.push_back(
        on_device(weight_->data() + size_t{tap} * channels_, channels_, context_.dtype));
  if (bias_) plain_bias_ = on_device(bias_->data(), channels_, context_.dtype);
}

array CausalConv::operator()(StatePool& pool,
                             StatePart part,
                             const GatedChannels& in,
                             const Step& step) const {
  if (in.x.shape(1) != static_cast<int>(channels_) || part.floats != state_floats())
    throw std::invalid_argument(
        fmt::format("[causal_conv] {} columns and a state of {} floats do not fit {} channels",
                    in.x.shape(1), part.floats, channels_));
  return context_.is_fast() ? run_fast(pool, part, in, step) : run_plain(pool, part, in, step);
}

/// Of the last `tokens` of one row's inputs.
array CausalConv::convolved(const array& inputs, int tokens) const {
  array sum = mx::multiply(token_rows(inputs, 0, tokens), plain_taps_[0]);
  for (int tap = 1; tap < static_cast<int>(taps_); ++tap)
    sum = mx::add(sum, mx::multiply(token_rows(inputs, tap, tap + tokens),
                                    plain_taps_[static_cast<size_t>(tap)]));
  if (plain_bias_) sum = mx::add(sum, *plain_bias_);
  return has_silu_ ? mx::multiply(sum, mx::sigmoid(sum)) : sum;
}

array CausalConv::run_plain(StatePool& pool,
                            StatePart part,
                            const GatedChannels& in,
                            const Step& step) const {
  const int kept = static_cast<int>(taps_) - 1, channels = static_cast<int>(channels_);
  const array all = in.gate ? mx::multiply(*in.gate, in.x) : in.x;
  const array before = mx::astype(load_states(pool, part, step), all.dtype());
  std::vector<array> out, saved;
  int at = 0, index = 0;
  for (const StepRow& row : step.rows()) {
    const int tokens = static_cast<int>(row.tokens.size());
    const array state = mx::reshape(token_rows(before, index, index + 1), {kept, channels});
    const array inputs = mx::concatenate({state, token_rows(all, at, at + tokens)}, 0);
    out.push_back(convolved(inputs, tokens));
    for (const StateSave& save : row.saves) {
      const int from = static_cast<int>(save.tokens);
      saved.push_back(mx::reshape(token_rows(inputs, from, from + kept), {1, kept * channels}));
    }
    at += tokens;
    ++index;
  }
  if (!saved.empty()) store_states(pool, part, mx::concatenate(saved, 0), step);
  const array joined = out.size() == 1 ? out[0] : mx::concatenate(out, 0);
  return in.out_gate ? mx::multiply(*in.out_gate, joined) : joined;
}

array CausalConv::run_fast(StatePool& pool,
                           StatePart part,
                           const GatedChannels& channels,
                           const Step& step) const {
  std::vector<array> inputs = {channels.x};
  if (channels.gate) inputs.push_back(*channels.gate);
  if (channels.out_gate) inputs.push_back(*channels.out_gate);
  const auto bind = [&step, has_gate = channels.gate.has_value(),
                     has_out_gate = channels.out_gate.has_value(), taps = taps_,
                     has_silu = has_silu_, weight = weight_, bias = bias_,
                     workers = context_.workers](const std::vector<array>& in, float* out,
                                                 BoundStates states) -> CpuCall {
    const array& gate = in[1];  // where there is one
    const array& out_gate = in[has_gate ? 2 : 1];
    return BoundConv{.args = {.x = in[0].data<float>(),
                              .gate = has_gate ? gate.data<float>() : nullptr,
                              .out_gate = has_out_gate ? out_gate.data<float>() : nullptr,
                              .x_stride = row_stride(in[0]),
                              .gate_stride = has_gate ? row_stride(gate) : 0,
                              .out_gate_stride = has_out_gate ? row_stride(out_gate) : 0,
                              .weight = weight->data(),
                              .bias = bias ? bias->data() : nullptr,
                              .channels = static_cast<size_t>(in[0].shape(1)),
                              .taps = taps,
                              .has_silu = has_silu,
                              .states = states.first,
                              .state_stride = states.stride,
                              .out = out},
                     .step = step,
                     .workers = workers,
                     .weight = weight,
                     .bias = bias};
  };
  return state_op("CausalConv", channels.x.shape(), pool, part, std::move(inputs), bind);
}

}  // namespace tandem::tensor
