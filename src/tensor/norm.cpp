#include "tensor/norm.h"

#include "kernels/norm.h"
#include "tensor/host.h"

namespace tandem::tensor {

RmsNorm::RmsNorm(const Weights& module, double eps)
    : context_(module.context()),
      eps_(static_cast<float>(eps)),
      weight_(std::make_shared<const std::vector<float>>(module.vector("weight"))),
      plain_weight_(mx::astype(from_host(*weight_), context_.dtype)) {
  plain_weight_.eval();
}

array RmsNorm::operator()(const array& x) const {
  const auto width = static_cast<int>(weight_->size());
  if (x.shape(1) % width != 0)
    throw std::invalid_argument(
        fmt::format("[rms_norm] rows of {} do not hold runs of {}", x.shape(1), width));
  if (context_.is_fast()) return run_fast(x);
  if (x.shape(1) == width) return mx::fast::rms_norm(x, plain_weight_, eps_);
  const array runs = mx::reshape(x, {x.shape(0), x.shape(1) / width, width});
  return mx::reshape(mx::fast::rms_norm(runs, plain_weight_, eps_), x.shape());
}

array RmsNorm::run_fast(const array& x) const {
  return cpu_op("RmsNorm", x.shape(), mx::float32, {x},
                [weight = weight_, eps = eps_, workers = context_.workers](const auto& inputs,
                                                                           auto& outputs) {
                  const array& in = inputs[0];
                  allocate(outputs[0]);
                  const size_t width = weight->size();
                  const size_t stride = row_stride(in);
                  const auto tokens = static_cast<size_t>(in.shape(0));
                  const auto total = static_cast<size_t>(in.shape(1));
                  // One call a head: rows of one head lie `stride` apart.
                  for (size_t at = 0; at < total; at += width)
                    kernels::rms_norm(*workers, {.x = in.template data<float>() + at,
                                                 .rows = tokens,
                                                 .width = width,
                                                 .x_stride = stride,
                                                 .weight = weight->data(),
                                                 .eps = eps,
                                                 .out = outputs[0].template data<float>() + at,
                                                 .out_stride = total});
                });
}

}  // namespace tandem::tensor
