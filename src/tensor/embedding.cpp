#include "tensor/embedding.h"

#include <algorithm>

#include "tensor/gather.h"
#include "tensor/host.h"

namespace tandem::tensor {

Embedding::Embedding(const Weights& module, uint32_t hidden, topology::Range rows)
    : context_(module.context()), hidden_(hidden), rows_(rows) {
  if (rows.empty())
    module.skip();
  else
    matrix_.emplace(std::vector<MatrixSource>{{module, rows}}, hidden, topology::Range{0, hidden},
                    false);
}

array Embedding::operator()(const Step& step) const {
  if (step.id_array()) return mx::astype(matrix_->gather(*step.id_array()), context_.dtype);
  if (!context_.collective) return mx::astype(matrix_->gather(step.ids()), context_.dtype);
  if (!matrix_) {
    const array none = mx::zeros({static_cast<int>(step.tokens()), 1}, context_.dtype);
    return all_sum(context_, zeros_after(context_, none, hidden_));
  }
  std::vector<uint32_t> local;
  std::vector<float> keep;
  for (const uint32_t id : step.ids()) {
    local.push_back(rows_.contains(id) ? id - rows_.begin : 0);
    keep.push_back(rows_.contains(id) ? 1.0F : 0.0F);
  }
  return all_sum(context_, masked(matrix_->gather(std::move(local)), std::move(keep)));
}

array Embedding::masked(const array& rows, std::vector<float> keep) const {
  if (!context_.is_fast()) {
    const array mask = from_host(keep, {static_cast<int>(keep.size()), 1});
    return mx::astype(mx::multiply(rows, mask), context_.dtype);
  }
  return cpu_op("KeepRows", rows.shape(), mx::float32, {rows},
                [keep = std::move(keep)](const auto& in, auto& out) {
                  allocate(out[0]);
                  const auto width = static_cast<size_t>(in[0].shape(1));
                  for (size_t r = 0; r < keep.size(); ++r) {
                    const float* from = in[0].template data<float>() + r * width;
                    float* to = out[0].template data<float>() + r * width;
                    if (keep[r] != 0)
                      std::copy_n(from, width, to);
                    else
                      std::fill_n(to, width, 0.0F);
                  }
                });
}

}  // namespace tandem::tensor
