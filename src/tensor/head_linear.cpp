#include "tensor/head_linear.h"

#include <algorithm>

#include "kernels/grouped_matmul.h"
#include "tensor/cpu_op.h"
#include "tensor/dtype.h"
#include "tensor/quantized_product.h"

namespace tandem::tensor {
namespace {

array stacked(const std::vector<MappedMatrix>& heads, format::Tensor MappedMatrix::* part) {
  std::vector<array> all;
  for (const MappedMatrix& head : heads) {
    const format::Tensor& t = head.*part;
    all.push_back(own_array(t.bytes.data(),
                            {static_cast<int>(t.shape[0]), static_cast<int>(t.shape[1])},
                            mlx_dtype(t.dtype)));
  }
  array out = mx::stack(all, 0);
  mx::eval(out);
  return out;
}

array of_type(const array& x, mx::Dtype dtype) {
  array out = mx::astype(x, dtype);
  mx::eval(out);
  return out;
}

/// A product of heads with its arguments bound.
struct BoundHeads {
  std::shared_ptr<kernels::WorkerPool> workers;
  std::shared_ptr<const std::vector<kernels::PackedMatrix>> matrices;
  kernels::HeadMatmulArgs args;  // y begins with the first head's kept values
  size_t kept;

  void operator()() const {
    const size_t inputs = matrices->front().inputs();
    for (size_t r = 0; r < args.rows && kept > 0; ++r)
      for (size_t h = 0; h < matrices->size(); ++h)
        std::copy_n(args.x + r * args.x_stride + h * args.x_step + inputs, kept,
                    args.y + r * args.y_stride + h * args.y_step);
    kernels::HeadMatmulArgs products = args;
    products.y += kept;
    kernels::head_matmul(*workers, *matrices, products);
  }
};

}  // namespace

HeadLinear::HeadLinear(const Weights& module, const std::vector<MappedMatrix>& heads)
    : context_(module.context()),
      inputs_(static_cast<uint32_t>(heads.front().inputs())),
      outputs_(static_cast<uint32_t>(heads.front().outputs())),
      heads_(static_cast<uint32_t>(heads.size())) {
  if (!context_.is_fast()) {
    load_plain(module, heads);
    return;
  }
  const auto map = [&heads](uint32_t head) { return std::vector{heads[head]}; };
  packed_ = std::make_shared<const Packed>(pack_all(module, heads_, map));
}

void HeadLinear::load_plain(const Weights& module, const std::vector<MappedMatrix>& heads) {
  for (const MappedMatrix& head : heads) require_finite(head, {0, outputs_}, {0, inputs_});
  quantization_ = heads.front().quantization;
  weight_ = stacked(heads, &MappedMatrix::weight);
  if (quantization_) {
    scales_ = stacked(heads, &MappedMatrix::scales);
    module.count_bytes(scales_->nbytes());
    if (heads.front().has_biases()) {
      scales_ = of_type(*scales_, context_.dtype);
      biases_ = of_type(stacked(heads, &MappedMatrix::biases), context_.dtype);
      module.count_bytes(biases_->nbytes());
    }
  } else {
    weight_ = of_type(*weight_, context_.dtype);
  }
  module.count_bytes(weight_->nbytes());
}

/// x [heads, tokens, inputs]
array HeadLinear::multiply_plain(const array& x) const {
  if (quantization_) return quantized_product(x, *weight_, *scales_, biases_, *quantization_);
  return mx::matmul(x, mx::swapaxes(*weight_, -1, -2));
}

array HeadLinear::run_plain(const array& x, int kept) const {
  const int tokens = x.shape(0), heads = static_cast<int>(heads_),
            inputs = static_cast<int>(inputs_);
  const array each = mx::reshape(x, {tokens, heads, inputs + kept});
  const array from = mx::slice(each, {0, 0, 0}, {tokens, heads, inputs});
  array out = mx::swapaxes(multiply_plain(mx::swapaxes(from, 0, 1)), 0, 1);
  if (kept > 0)
    out =
        mx::concatenate({mx::slice(each, {0, 0, inputs}, {tokens, heads, inputs + kept}), out}, 2);
  return mx::reshape(out, {tokens, -1});
}

array HeadLinear::run_fast(const array& x, size_t kept) const {
  const size_t x_step = inputs_ + kept, y_step = kept + outputs_;
  const auto bind = [matrices = packed_, workers = context_.workers, kept, x_step, y_step](
                        const std::vector<array>& in, std::vector<array>& out) -> CpuCall {
    allocate(out[0]);
    return BoundHeads{.workers = workers,
                      .matrices = matrices,
                      .args = {.x = in[0].data<float>(),
                               .rows = static_cast<size_t>(in[0].shape(0)),
                               .x_stride = row_stride(in[0]),
                               .x_step = x_step,
                               .y = out[0].data<float>(),
                               .y_stride = matrices->size() * y_step,
                               .y_step = y_step},
                      .kept = kept};
  };
  return cpu_op("HeadMatmul", {x.shape(0), static_cast<int>(heads_ * y_step)}, mx::float32, {x},
                bind);
}

array HeadLinear::operator()(const array& x, uint32_t kept) const {
  if (x.shape(1) != static_cast<int>(heads_ * (inputs_ + kept)))
    throw std::invalid_argument(fmt::format("[head_linear] {} columns are not {} heads of {} + {}",
                                            x.shape(1), heads_, inputs_, kept));
  return context_.is_fast() ? run_fast(x, kept) : run_plain(x, static_cast<int>(kept));
}

}  // namespace tandem::tensor
