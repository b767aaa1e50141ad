#include "tensor/group_norm.h"

#include <algorithm>

#include "kernels/norm.h"
#include "tensor/cpu_op.h"
#include "tensor/gather.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

std::vector<float> weight_here(const Weights& module, const GroupNorm::Columns& columns) {
  const std::vector<float> all = module.vector("weight");
  if (all.size() != columns.all)
    throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{}.weight should have {} elements, has {}",
                                                        module.path(), columns.all, all.size())});
  return {all.begin() + columns.here.begin, all.begin() + columns.here.end};
}

array columns_of(const array& x, topology::Range columns) {
  return mx::slice(x, {0, static_cast<int>(columns.begin)},
                   {x.shape(0), static_cast<int>(columns.end)});
}

}  // namespace

GroupNorm::GroupNorm(const Weights& module, double eps, const Columns& columns)
    : context_(module.context()),
      eps_(static_cast<float>(eps)),
      groups_(columns.groups),
      group_width_(columns.all / columns.groups),
      weight_(std::make_shared<const std::vector<float>>(weight_here(module, columns))) {
  const auto [begin, end] = columns.here;
  for (uint32_t at = begin; at < end; at = begin + runs_.back().columns.end) {
    const uint32_t group = at / group_width_;
    runs_.push_back({group, {at - begin, std::min(end, (group + 1) * group_width_) - begin}});
  }
}

array GroupNorm::operator()(const array& x) const {
  if (context_.is_fast()) return normed_fast(x, all_sum(context_, squares_fast(x)));
  return normed_plain(x, all_sum(context_, squares_plain(x)));
}

array GroupNorm::join_others(const Context& context, const array& x, uint32_t groups) {
  return all_sum(context, mx::astype(zeros_after(context, x, groups), mx::float32));
}

array GroupNorm::squares_fast(const array& x) const {
  const mx::Shape shape = {x.shape(0), static_cast<int>(groups_)};
  const auto bind = [runs = runs_, workers = context_.workers](
                        const std::vector<array>& in, std::vector<array>& outputs) -> CpuCall {
    array& out = outputs[0];
    allocate(out);
    const kernels::SquareSumArgs all = {.x = in[0].data<float>(),
                                        .rows = static_cast<size_t>(in[0].shape(0)),
                                        .x_stride = row_stride(in[0]),
                                        .out = out.data<float>(),
                                        .out_stride = static_cast<size_t>(out.shape(1))};
    return [workers, runs, all] {
      std::fill_n(all.out, all.rows * all.out_stride, 0.0F);
      for (const Run& run : runs) {
        kernels::SquareSumArgs part = all;
        part.x += run.columns.begin;
        part.width = run.columns.size();
        part.out += run.group;
        kernels::sum_squares(*workers, part);
      }
    };
  };
  return cpu_op("GroupSquares", shape, mx::float32, {x}, bind);
}

array GroupNorm::normed_fast(const array& x, const array& squares) const {
  const auto bind = [runs = runs_, weight = weight_, eps = eps_, width = size_t{group_width_},
                     workers = context_.workers](const std::vector<array>& in,
                                                 std::vector<array>& outputs) -> CpuCall {
    allocate(outputs[0]);
    const kernels::RmsNormArgs all = {.x = in[0].data<float>(),
                                      .rows = static_cast<size_t>(in[0].shape(0)),
                                      .x_stride = row_stride(in[0]),
                                      .weight = weight->data(),
                                      .eps = eps,
                                      .squares = in[1].data<float>(),
                                      .squares_stride = row_stride(in[1]),
                                      .squares_width = width,
                                      .out = outputs[0].data<float>(),
                                      .out_stride = weight->size()};
    return [workers, weight, runs, all] {
      for (const Run& run : runs) {
        kernels::RmsNormArgs part = all;
        part.x += run.columns.begin;
        part.width = run.columns.size();
        part.weight += run.columns.begin;
        part.squares += run.group;
        part.out += run.columns.begin;
        kernels::rms_norm(*workers, part);
      }
    };
  };
  return cpu_op("GroupNorm", x.shape(), mx::float32, {x, squares}, bind);
}

array GroupNorm::squares_plain(const array& x) const {
  std::vector<array> sums(groups_, mx::zeros({x.shape(0), 1}));
  for (const Run& run : runs_)
    sums[run.group] =
        mx::sum(mx::square(mx::astype(columns_of(x, run.columns), mx::float32)), 1, true);
  return mx::concatenate(sums, 1);
}

array GroupNorm::normed_plain(const array& x, const array& squares) const {
  const array mean = mx::divide(squares, array(static_cast<float>(group_width_)));
  const array factors = mx::rsqrt(mx::add(mean, array(eps_)));
  std::vector<array> out;
  for (const Run& run : runs_)
    out.push_back(mx::multiply(mx::astype(columns_of(x, run.columns), mx::float32),
                               columns_of(factors, {run.group, run.group + 1})));
  return mx::astype(mx::multiply(mx::concatenate(out, 1), from_host(*weight_)), x.dtype());
}

}  // namespace tandem::tensor
