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

array RowLinear::operator()(const array& x) const {
  const array part = matrix_->multiply(x).front();
  const array sum = all_sum(context_, part);
  return bias_ ? mx::add(sum, *bias_) : sum;
}

array RowLinear::sum_of_others(const array& x) const {
  const array sum = all_sum(context_, zeros_after(context_, x, outputs_));
  return bias_ ? mx::add(sum, *bias_) : sum;
}

}  // namespace tandem::tensor
