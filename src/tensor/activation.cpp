#include "tensor/activation.h"

#include "kernels/activation.h"

namespace tandem::tensor {

array swiglu(const Context& context, const array& gate, const array& up) {
  if (!context.is_fast()) return mx::multiply(mx::multiply(gate, mx::sigmoid(gate)), up);
  return cpu_op("Swiglu", gate.shape(), mx::float32, {gate, up},
                [workers = context.workers](const auto& inputs, auto& outputs) -> CpuCall {
                  allocate(outputs[0]);
                  const kernels::GatedArgs args = {.gate = inputs[0].template data<float>(),
                                                   .up = inputs[1].template data<float>(),
                                                   .out = outputs[0].template data<float>(),
                                                   .rows = static_cast<size_t>(inputs[0].shape(0)),
                                                   .width = static_cast<size_t>(inputs[0].shape(1)),
                                                   .gate_stride = row_stride(inputs[0]),
                                                   .up_stride = row_stride(inputs[1])};
                  return [workers, args] { kernels::swiglu(*workers, args); };
                });
}

}  // namespace tandem::tensor
