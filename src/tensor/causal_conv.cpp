#include "tensor/causal_conv.h"

#include "kernels/causal_conv.h"
#include "kernels/scalar_type.h"
#include "tensor/dtype.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

/// [taps, channels], from [channels, taps] in the checkpoint.
std::vector<float> load_taps(const Weights& module, uint32_t taps, topology::Range channels) {
  const format::Tensor stored = module.raw("weight", channels);
  int64_t per_channel = 1;
  for (size_t axis = 1; axis < stored.shape.size(); ++axis) per_channel *= stored.shape[axis];
  if (stored.shape.size() < 2 || per_channel != int64_t{taps})
    throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{}: the convolution does not have {} taps",
                                                        module.path(), taps)});
  const kernels::ScalarType type = scalar_type(stored.dtype);
  std::vector<float> out(size_t{taps} * channels.size());
  for (uint32_t c = 0; c < channels.size(); ++c)
    for (uint32_t tap = 0; tap < taps; ++tap)
      out[size_t{tap} * channels.size() + c] =
          kernels::load_scalar(stored.bytes.data(), type, size_t{c} * taps + tap);
  module.count_bytes(out.size() * sizeof(float));
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

CausalConv::CausalConv(const Weights& module, uint32_t taps, topology::Range channels)
    : context_(module.context()),
      taps_(taps),
      channels_(channels.size()),
      weight_(std::make_shared<const std::vector<float>>(load_taps(module, taps, channels))) {
  if (module.has("bias"))
    bias_ = std::make_shared<const std::vector<float>>(module.vector("bias", channels));
  if (context_.is_fast()) return;
  for (uint32_t tap = 0; tap < taps; ++tap)
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
  return plain_bias_ ? mx::add(sum, *plain_bias_) : sum;
}

array CausalConv::run_plain(StatePool& pool,
                            StatePart part,
                            const GatedChannels& in,
                            const Step& step) const {
  const int kept = static_cast<int>(taps_) - 1, channels = static_cast<int>(channels_);
  const array all = mx::multiply(in.gate, in.x);
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
  return mx::multiply(in.out_gate, out.size() == 1 ? out[0] : mx::concatenate(out, 0));
}

array CausalConv::run_fast(StatePool& pool,
                           StatePart part,
                           const GatedChannels& channels,
                           const Step& step) const {
  const auto bind = [&step, taps = taps_, weight = weight_, bias = bias_,
                     workers = context_.workers](const std::vector<array>& in, float* out,
                                                 BoundStates states) -> CpuCall {
    return BoundConv{.args = {.x = in[0].data<float>(),
                              .gate = in[1].data<float>(),
                              .out_gate = in[2].data<float>(),
                              .x_stride = row_stride(in[0]),
                              .gate_stride = row_stride(in[1]),
                              .out_gate_stride = row_stride(in[2]),
                              .weight = weight->data(),
                              .bias = bias ? bias->data() : nullptr,
                              .channels = static_cast<size_t>(in[0].shape(1)),
                              .taps = taps,
                              .states = states.first,
                              .state_stride = states.stride,
                              .out = out},
                     .step = step,
                     .workers = workers,
                     .weight = weight,
                     .bias = bias};
  };
  return state_op("CausalConv", channels.x.shape(), pool, part,
                  {channels.x, channels.gate, channels.out_gate}, bind);
}

}  // namespace tandem::tensor
