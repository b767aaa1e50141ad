#include "tensor/activation.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/limited_swiglu.h"

namespace tandem::tensor {
namespace {

array gated_plain(Gate gate, const array& x, const array& up, float limit) {
  const auto constant = [&](float value) { return array(value, x.dtype()); };
  if (gate == Gate::kSigmoid) return mx::multiply(mx::sigmoid(x), up);
  if (gate == Gate::kRelu) return mx::multiply(mx::maximum(x, constant(0)), up);
  if (gate == Gate::kSilu) {
    const array silu = mx::multiply(x, mx::sigmoid(x));
    if (limit <= 0) return mx::multiply(silu, up);
    return mx::multiply(mx::minimum(silu, constant(limit)),
                        mx::clip(up, constant(-limit), constant(limit)));
  }
  if (gate == Gate::kClamped) {
    const array g = mx::minimum(x, constant(7));
    const array linear = mx::add(mx::clip(up, constant(-7), constant(7)), constant(1));
    return mx::multiply(mx::multiply(g, mx::sigmoid(mx::multiply(constant(1.702F), g))), linear);
  }
  const array cube = mx::multiply(mx::multiply(x, x), x);
  const array inner = mx::multiply(constant(0.7978845608028654F),  // sqrt(2 / pi)
                                   mx::add(x, mx::multiply(constant(0.044715F), cube)));
  const array half = mx::multiply(constant(0.5F), x);
  return mx::multiply(mx::multiply(half, mx::add(constant(1), mx::tanh(inner))), up);
}

/// A node whose output begins as a copy of x, which must be contiguous.
template <class F>
array over_copy(const char* name, const Context& context, const array& x, F change) {
  return cpu_op(name, x.shape(), mx::float32, {x},
                [workers = context.workers, change](const auto& inputs, auto& outputs) -> CpuCall {
                  allocate(outputs[0]);
                  return [workers, change, from = inputs[0].template data<float>(),
                          to = outputs[0].template data<float>(), count = inputs[0].size()] {
                    std::copy_n(from, count, to);
                    change(*workers, to, count);
                  };
                });
}

}  // namespace

void run_gated(kernels::WorkerPool& workers,
               Gate gate,
               float limit,
               const kernels::GatedArgs& args) {
  switch (gate) {
    case Gate::kSilu:
      if (limit > 0) return kernels::limited_swiglu(workers, args, limit);
      return kernels::swiglu(workers, args);
    case Gate::kGeluTanh:
      return kernels::geglu_tanh(workers, args);
    case Gate::kSigmoid:
      return kernels::sigmoid_gated(workers, args);
    case Gate::kClamped:
      return kernels::clamped_swiglu(workers, args);
    case Gate::kRelu:
      return kernels::relu_gated(workers, args);
  }
}

array gated(const Context& context, Gate gate, const array& x, const array& up, float limit) {
  if (!context.is_fast()) return gated_plain(gate, x, up, limit);
  return cpu_op(
      "Gated", x.shape(), mx::float32, {x, up},
      [gate, limit, workers = context.workers](const auto& inputs, auto& outputs) -> CpuCall {
        allocate(outputs[0]);
        const kernels::GatedArgs args = {.gate = inputs[0].template data<float>(),
                                         .up = inputs[1].template data<float>(),
                                         .out = outputs[0].template data<float>(),
                                         .rows = static_cast<size_t>(inputs[0].shape(0)),
                                         .width = static_cast<size_t>(inputs[0].shape(1)),
                                         .gate_stride = row_stride(inputs[0]),
                                         .up_stride = row_stride(inputs[1])};
        return [workers, gate, limit, args] { run_gated(*workers, gate, limit, args); };
      });
}

array softcap(const Context& context, const array& x, float cap) {
  if (!context.is_fast())
    return mx::multiply(mx::tanh(mx::divide(x, array(cap, x.dtype()))), array(cap, x.dtype()));
  return over_copy("Softcap", context, x,
                   [cap](kernels::WorkerPool& workers, float* to, size_t count) {
                     kernels::softcap(workers, to, cap, count);
                   });
}

array times_sigmoid(const Context& context, const array& x, const array& logits) {
  if (!context.is_fast()) {
    const array runs = mx::reshape(x, {x.shape(0), logits.shape(1), -1});
    return mx::reshape(mx::multiply(runs, mx::expand_dims(mx::sigmoid(logits), 2)), x.shape());
  }
  return cpu_op("TimesSigmoid", x.shape(), mx::float32, {x, logits},
                [](const auto& inputs, auto& outputs) -> CpuCall {
                  allocate(outputs[0]);
                  return [x = inputs[0].template data<float>(), x_stride = row_stride(inputs[0]),
                          logits = inputs[1].template data<float>(), stride = row_stride(inputs[1]),
                          out = outputs[0].template data<float>(),
                          rows = static_cast<size_t>(inputs[0].shape(0)),
                          runs = static_cast<size_t>(inputs[1].shape(1)),
                          width = static_cast<size_t>(inputs[0].shape(1) / inputs[1].shape(1))] {
                    for (size_t r = 0; r < rows; ++r)
                      for (size_t run = 0; run < runs; ++run) {
                        const float weight = 1 / (1 + std::exp(-logits[r * stride + run]));
                        const float* from = x + r * x_stride + run * width;
                        float* to = out + (r * runs + run) * width;
                        for (size_t i = 0; i < width; ++i) to[i] = from[i] * weight;
                      }
                  };
                });
}

array scaled(const Context& context, const array& x, float factor) {
  if (!context.is_fast()) return mx::multiply(x, array(factor, x.dtype()));
  return over_copy("Scale", context, x,
                   [factor](kernels::WorkerPool& workers, float* to, size_t count) {
                     kernels::scale(workers, to, factor, count);
                   });
}

}  // namespace tandem::tensor
