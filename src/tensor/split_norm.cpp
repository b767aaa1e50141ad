#include "tensor/split_norm.h"

#include "kernels/norm.h"
#include "tensor/cpu_op.h"
#include "tensor/gather.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

std::vector<float> weight_of(const Weights& module, const SplitRmsNorm::Columns& columns) {
  const std::vector<float> all = module.vector("weight");
  if (all.size() != columns.all)
    throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{}.weight should have {} elements, has {}",
                                                        module.path(), columns.all, all.size())});
  return {all.begin() + columns.here.begin, all.begin() + columns.here.end};
}

array squares_plain(const array& x, topology::Range from) {
  const int begin = static_cast<int>(from.begin), end = static_cast<int>(from.end);
  const array counted = mx::slice(x, {0, begin}, {x.shape(0), end});
  return mx::sum(mx::square(mx::astype(counted, mx::float32)), 1, true);
}

/// Each x's sum of squares over some of its columns, beside each other.
array squares_fast(const Context& context,
                   std::vector<array> xs,
                   std::vector<topology::Range> from) {
  const mx::Shape shape = {xs[0].shape(0), static_cast<int>(xs.size())};
  const auto bind = [workers = context.workers, from = std::move(from)](
                        const std::vector<array>& inputs, std::vector<array>& outputs) -> CpuCall {
    allocate(outputs[0]);
    std::vector<kernels::SquareSumArgs> parts;
    for (size_t i = 0; i < inputs.size(); ++i)
      parts.push_back({.x = inputs[i].data<float>() + from[i].begin,
                       .rows = static_cast<size_t>(inputs[i].shape(0)),
                       .width = from[i].size(),
                       .x_stride = row_stride(inputs[i]),
                       .out = outputs[0].data<float>() + i,
                       .out_stride = inputs.size()});
    return [workers, parts = std::move(parts)] {
      for (const auto& part : parts) kernels::sum_squares(*workers, part);
    };
  };
  return cpu_op("SumSquares", shape, mx::float32, std::move(xs), bind);
}

}  // namespace

SplitRmsNorm::SplitRmsNorm(const Weights& module, double eps, const Columns& columns)
    : context_(module.context()),
      eps_(static_cast<float>(eps)),
      columns_(columns),
      weight_(std::make_shared<const std::vector<float>>(weight_of(module, columns))),
      plain_weight_(from_host(*weight_)) {
  plain_weight_.eval();
}

array SplitRmsNorm::sums_of_squares(const std::vector<Piece>& pieces) {
  const Context& context = pieces[0].norm.context_;
  std::vector<array> xs;
  std::vector<topology::Range> counted;
  for (const auto& [norm, x] : pieces) {
    const auto [all, here, own] = norm.columns_;
    xs.push_back(x);
    counted.push_back({own.begin - here.begin, own.end - here.begin});
  }
  if (context.is_fast())
    return all_sum(context, squares_fast(context, std::move(xs), std::move(counted)));
  for (size_t i = 0; i < xs.size(); ++i) xs[i] = squares_plain(xs[i], counted[i]);
  return all_sum(context, mx::concatenate(xs, 1));
}

array SplitRmsNorm::sums_of_others(const Context& context, const array& x, uint32_t pieces) {
  return all_sum(context, mx::astype(zeros_after(context, x, pieces), mx::float32));
}

array SplitRmsNorm::operator()(const array& x, const array& sums, uint32_t index) const {
  if (!context_.is_fast()) return run_plain(x, sums, index);
  const auto bind = [weight = weight_, eps = eps_, all = columns_.all, index,
                     workers = context_.workers](const std::vector<array>& inputs,
                                                 std::vector<array>& outputs) -> CpuCall {
    allocate(outputs[0]);
    const kernels::RmsNormArgs args = {.x = inputs[0].data<float>(),
                                       .rows = static_cast<size_t>(inputs[0].shape(0)),
                                       .width = weight->size(),
                                       .x_stride = row_stride(inputs[0]),
                                       .weight = weight->data(),
                                       .eps = eps,
                                       .squares = inputs[1].data<float>() + index,
                                       .squares_stride = row_stride(inputs[1]),
                                       .squares_width = all,
                                       .out = outputs[0].data<float>()};
    return [workers, weight, args] { kernels::rms_norm(*workers, args); };
  };
  return cpu_op("SplitRmsNorm", x.shape(), mx::float32, {x, sums}, bind);
}

array SplitRmsNorm::run_plain(const array& x, const array& sums, uint32_t index) const {
  const int column = static_cast<int>(index);
  const array sum = mx::slice(sums, {0, column}, {sums.shape(0), column + 1});
  const array mean = mx::divide(sum, array(static_cast<float>(columns_.all)));
  const array factor = mx::rsqrt(mx::add(mean, array(eps_)));
  const array normed =
      mx::multiply(mx::multiply(mx::astype(x, mx::float32), factor), plain_weight_);
  return mx::astype(normed, x.dtype());
}

}  // namespace tandem::tensor
