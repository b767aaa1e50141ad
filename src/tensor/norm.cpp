#include "tensor/norm.h"

#include <cmath>

#include "kernels/norm.h"
#include "tensor/host.h"

namespace tandem::tensor {

namespace {

std::vector<float> moved(std::vector<float> weight, double offset) {
  for (float& each : weight) each += static_cast<float>(offset);
  return weight;
}

std::vector<float> weight_of_groups(const Weights& module, const RmsNorm::Groups& groups) {
  const std::vector<float> all = module.vector("weight");
  if (all.size() != groups.all)
    throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{}.weight should have {} elements, has {}",
                                                        module.path(), groups.all, all.size())});
  return {all.begin() + groups.here.begin, all.begin() + groups.here.end};
}

void layer_norm(const float* x,
                const std::vector<float>& weight,
                const std::vector<float>& bias,
                float eps,
                float* y) {
  const size_t width = weight.size();
  float sum = 0, squares = 0;
  for (size_t i = 0; i < width; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(width);
  for (size_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const float factor = 1 / std::sqrt(squares / static_cast<float>(width) + eps);
  for (size_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
}

}  // namespace

RmsNorm::RmsNorm(const Weights& module, double eps, double offset)
    : RmsNorm(module.context(), moved(module.vector("weight"), offset), 0, eps) {}

RmsNorm::RmsNorm(const Context& context, std::vector<float> weight, double eps)
    : RmsNorm(context, std::move(weight), 0, eps) {}

RmsNorm::RmsNorm(const Weights& module, double eps, const Groups& groups)
    : RmsNorm(module.context(), weight_of_groups(module, groups), groups.width, eps) {}

RmsNorm::RmsNorm(const Context& context, std::vector<float> weight, uint32_t width, double eps)
    : context_(context),
      eps_(static_cast<float>(eps)),
      width_(width != 0 ? width : static_cast<uint32_t>(weight.size())),
      weight_(std::make_shared<const std::vector<float>>(std::move(weight))),
      plain_weight_(mx::astype(from_host(*weight_), context_.dtype)) {
  plain_weight_.eval();
}

array RmsNorm::operator()(const array& x) const {
  const auto columns = static_cast<int>(weight_->size());
  if (x.shape(1) % columns != 0)
    throw std::invalid_argument(
        fmt::format("[rms_norm] rows of {} do not hold runs of {}", x.shape(1), columns));
  return context_.is_fast() ? run_fast(x) : run_plain(x);
}

array RmsNorm::run_plain(const array& x) const {
  const auto width = static_cast<int>(width_);
  if (x.shape(1) == width) return mx::fast::rms_norm(x, plain_weight_, eps_);
  const array runs = mx::reshape(x, {x.shape(0), x.shape(1) / width, width});
  if (weight_->size() == width_)
    return mx::reshape(mx::fast::rms_norm(runs, plain_weight_, eps_), x.shape());
  const array normed = mx::reshape(mx::fast::rms_norm(runs, std::nullopt, eps_), x.shape());
  return mx::multiply(normed, plain_weight_);
}

array RmsNorm::run_fast(const array& x) const {
  const auto bind = [weight = weight_, width = size_t{width_}, eps = eps_,
                     workers = context_.workers](const std::vector<array>& inputs,
                                                 std::vector<array>& outputs) -> CpuCall {
    const array& in = inputs[0];
    allocate(outputs[0]);
    const auto total = static_cast<size_t>(in.shape(1));
    const kernels::RmsNormArgs args = {.x = in.data<float>(),
                                       .rows = static_cast<size_t>(in.shape(0)),
                                       .width = width,
                                       .x_stride = row_stride(in),
                                       .weight = weight->data(),
                                       .eps = eps,
                                       .out = outputs[0].data<float>(),
                                       .out_stride = total};
    if (args.x_stride == total && weight->size() == width) {  // heads lie one after the other
      kernels::RmsNormArgs all = args;
      all.rows = in.size() / args.width;
      all.x_stride = all.out_stride = args.width;
      return [workers, weight, all] { kernels::rms_norm(*workers, all); };
    }
    // One call a head: rows of one head lie a stride apart.
    return [workers, weight, args, total] {
      for (size_t first = 0; first < total; first += args.width) {
        kernels::RmsNormArgs part = args;
        part.x += first;
        part.weight += first % weight->size();
        part.out += first;
        kernels::rms_norm(*workers, part);
      }
    };
  };
  return cpu_op("RmsNorm", x.shape(), mx::float32, {x}, bind);
}

RmsNorm::Sum RmsNorm::of_sum(const array& x, const array& y) const {
  if (context_.is_fast()) return sum_fast(x, y);
  const array sum = mx::add(x, y);
  return {sum, (*this)(sum)};
}

RmsNorm::Sum RmsNorm::sum_fast(const array& x, const array& y) const {
  const auto bind = [weight = weight_, eps = eps_, workers = context_.workers](
                        const std::vector<array>& inputs, std::vector<array>& outputs) -> CpuCall {
    for (array& out : outputs) allocate(out);
    const kernels::RmsNormArgs args = {.x = inputs[0].data<float>(),
                                       .rows = static_cast<size_t>(inputs[0].shape(0)),
                                       .width = weight->size(),
                                       .x_stride = row_stride(inputs[0]),
                                       .weight = weight->data(),
                                       .eps = eps,
                                       .out = outputs[1].data<float>()};
    const kernels::AddendArgs addend = {.y = inputs[1].data<float>(),
                                        .y_stride = row_stride(inputs[1]),
                                        .sum = outputs[0].data<float>()};
    return [workers, weight, args, addend] { kernels::add_rms_norm(*workers, args, addend); };
  };
  const mx::Shape shape = x.shape();
  if (shape != y.shape() || shape.back() != static_cast<int>(weight_->size()))
    throw std::invalid_argument("[rms_norm] the rows of a sum are not as wide as the weight");
  const auto both = cpu_ops("AddRmsNorm", {shape, shape}, mx::float32, {x, y}, bind);
  return {both[0], both[1]};
}

LayerNorm::LayerNorm(const Weights& module, double eps)
    : context_(module.context()),
      eps_(static_cast<float>(eps)),
      weight_(std::make_shared<const std::vector<float>>(module.vector("weight"))),
      bias_(std::make_shared<const std::vector<float>>(module.vector("bias"))) {
  if (weight_->size() != bias_->size())
    throw LoadFailure(
        {ErrorCode::kCorrupt, fmt::format("{}: weight has {} values and bias {}", module.path(),
                                          weight_->size(), bias_->size())});
}

array LayerNorm::operator()(const array& x) const {
  if (!context_.is_fast())
    return mx::fast::layer_norm(x, mx::astype(from_host(*weight_), x.dtype()),
                                mx::astype(from_host(*bias_), x.dtype()), eps_);
  return cpu_op("LayerNorm", x.shape(), mx::float32, {x},
                [weight = weight_, bias = bias_, eps = eps_](const auto& in, auto& out) -> CpuCall {
                  allocate(out[0]);
                  return [weight, bias, eps, x = in[0].template data<float>(),
                          stride = row_stride(in[0]), y = out[0].template data<float>(),
                          rows = static_cast<size_t>(in[0].shape(0))] {
                    for (size_t r = 0; r < rows; ++r)
                      layer_norm(x + r * stride, *weight, *bias, eps, y + r * weight->size());
                  };
                });
}

}  // namespace tandem::tensor
