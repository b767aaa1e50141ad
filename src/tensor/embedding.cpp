#include "tensor/embedding.h"

#include "tensor/gather.h"
#include "tensor/host.h"

namespace tandem::tensor {

Embedding::Embedding(const Weights& module,
                     uint32_t hidden,
                     topology::Range rows,
                     topology::Range columns)
    : context_(module.context()), width_(columns.size()), rows_(rows) {
  if (rows.empty())
    module.skip();
  else
    matrix_.emplace(std::vector<MatrixSource>{{module, rows}}, hidden, columns, false);
}

array Embedding::operator()(const Step& step) const {
  if (step.id_array()) return mx::astype(matrix_->gather(*step.id_array()), context_.dtype);
  if (matrix_) {
    const array rows = matrix_->gather(step.ids(), rows_.begin);
    return all_sum(context_, mx::astype(rows, context_.dtype));
  }
  const array none = from_host(std::vector<float>(step.tokens()));
  return all_sum(context_, zeros_after(context_, none, width_));
}

}  // namespace tandem::tensor
