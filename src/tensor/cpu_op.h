// CPU kernels of ours as nodes of an MLX graph.
#pragma once

#include <mlx/mlx.h>
#include <mlx/primitives.h>

#include <functional>
#include <memory>
#include <vector>

#include "tensor/cpu_call.h"

namespace tandem::tensor {

namespace mx = mlx::core;
using mx::array;

/// Gives every output its data, by allocate(), or by view_columns() or share() of a buffer that
/// nobody else reads later, and returns the call that computes them from inputs that are available.
/// The call binds addresses, not arrays, and can be repeated (tape.h); what changes from step to
/// step it looks up in the Step. An empty call: the function computed at once and cannot be
/// repeated.
using CpuFunction =
    std::function<CpuCall(const std::vector<array>& inputs, std::vector<array>& outputs)>;

/// A node that runs a CpuFunction. Our evaluator (evaluator.h) calls it on its own thread; under
/// mx::eval it runs in the stream's thread, with outputs allocated beforehand.
class CpuOp final : public mx::Primitive {
 public:
  CpuOp(mx::Stream stream, const char* name, CpuFunction function)
      : Primitive(stream),
        name_(name),
        function_(std::make_shared<const CpuFunction>(std::move(function))) {}

  CpuCall bind(const std::vector<array>& inputs, std::vector<array>& outputs) const {
    return (*function_)(inputs, outputs);
  }

  void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override;
  void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) override;
  const char* name() const override { return name_; }

 private:
  const char* name_;
  std::shared_ptr<const CpuFunction> function_;  // shared: with tasks, which outlive the node
};

/// A function of inputs and outputs as a CpuFunction, whether it returns a call or computes at
/// once.
template <class F>
CpuFunction cpu_function(F function) {
  using Result = std::invoke_result_t<F&, const std::vector<array>&, std::vector<array>&>;
  if constexpr (std::is_void_v<Result>)
    return [function = std::move(function)](const auto& inputs, auto& outputs) {
      function(inputs, outputs);
      return CpuCall();
    };
  else
    return CpuFunction(std::move(function));
}

/// One node with one output.
array cpu_op(const char* name,
             mx::Shape shape,
             mx::Dtype dtype,
             std::vector<array> inputs,
             CpuFunction function);

/// One node with several outputs, all of one type.
std::vector<array> cpu_ops(const char* name,
                           std::vector<mx::Shape> shapes,
                           mx::Dtype dtype,
                           std::vector<array> inputs,
                           CpuFunction function);

template <class F>
array cpu_op(
    const char* name, mx::Shape shape, mx::Dtype dtype, std::vector<array> inputs, F function) {
  return cpu_op(name, std::move(shape), dtype, std::move(inputs),
                cpu_function(std::move(function)));
}

template <class F>
std::vector<array> cpu_ops(const char* name,
                           std::vector<mx::Shape> shapes,
                           mx::Dtype dtype,
                           std::vector<array> inputs,
                           F function) {
  return cpu_ops(name, std::move(shapes), dtype, std::move(inputs),
                 cpu_function(std::move(function)));
}

/// Gives an output of a CpuFunction row-major memory of its own, content undefined: of the
/// StepMemory in whose scope this is called (step_memory.h), or MLX's.
void allocate(array& out);

/// Makes an output [rows, width] those columns of a float32 buffer whose rows lie `stride` apart,
/// from `offset` on: a view, or a copy where the output has memory already.
void view_columns(array& out, const array& buffer, int64_t stride, int64_t offset);

/// Makes an output the same as an input, for changes in place: shared, or copied where it has
/// memory already.
void share(array& out, const array& in);

/// Floats from row to row of a matrix whose rows are contiguous. Throws std::invalid_argument for
/// others.
size_t row_stride(const array& matrix);

}  // namespace tandem::tensor
