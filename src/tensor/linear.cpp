#include "tensor/linear.h"

#include "tensor/gather.h"
#include "tensor/host.h"

namespace tandem::tensor {

RowLinear::RowLinear(const Weights& module,
                     uint32_t outputs,
                     uint32_t inputs,
                     topology::Range columns)
    : context_(module.context()), outputs_(outputs) {
  if (columns.empty())
    module.skip();
  else
    matrix_.emplace(std::vector<MatrixSource>{{module, {0, outputs}}}, inputs, columns,
                    context_.collective == nullptr);
  if (context_.collective && module.has("bias")) {
    const auto bias = module.vector("bias");
    bias_ = mx::astype(from_host(bias, {1, static_cast<int>(outputs)}), context_.dtype);
    bias_->eval();
  }
}

array RowLinear::with_bias(const array& sum) const {
  if (!bias_) return sum;
  if (!context_.is_fast()) return mx::add(sum, *bias_);
  return cpu_op(
      "AddBias", sum.shape(), mx::float32, {sum, *bias_}, [](const auto& in, auto& out) -> CpuCall {
        allocate(out[0]);
        return [x = in[0].template data<float>(), bias = in[1].template data<float>(),
                y = out[0].template data<float>(), size = in[0].size(), width = in[1].size()] {
          for (size_t i = 0; i < size; ++i) y[i] = x[i] + bias[i % width];
        };
      });
}

array RowLinear::operator()(const array& x) const { return with_bias(all_sum(context_, part(x))); }

array RowLinear::sum_of_others(const array& x) const {
  return with_bias(all_sum(context_, zeros_after(context_, x, outputs_)));
}

}  // namespace tandem::tensor
