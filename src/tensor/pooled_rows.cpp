#include "tensor/pooled_rows.h"

#include <algorithm>

#include "tensor/cpu_op.h"

namespace tandem::tensor {
namespace {

/// Token by token in doubles, so that the bits depend on nothing but the row.
struct PooledSums {
  const Step& step;
  const float* from;
  size_t stride;
  size_t width;
  float* to;

  void operator()() const {
    std::vector<double> sums(width);
    float* out = to;
    for (const PooledTokens& row : step.pooled()) {
      std::ranges::fill(sums, 0.0);
      for (size_t t = 0; t < row.count; ++t) {
        const float* token = from + (row.first + t) * stride;
        for (size_t i = 0; i < width; ++i) sums[i] += static_cast<double>(token[i]);
      }
      for (const double sum : sums) *out++ = static_cast<float>(sum);
    }
  }
};

array pooled_fast(const array& x, const Step& step) {
  const mx::Shape shape = {static_cast<int>(step.pooled().size()), x.shape(1)};
  return cpu_op("PooledRows", shape, mx::float32, {x},
                [&step](const auto& in, auto& out) -> CpuCall {
                  allocate(out[0]);
                  return PooledSums{.step = step,
                                    .from = in[0].template data<float>(),
                                    .stride = row_stride(in[0]),
                                    .width = static_cast<size_t>(in[0].shape(1)),
                                    .to = out[0].template data<float>()};
                });
}

array pooled_plain(const array& x, const Step& step) {
  std::vector<array> rows;
  for (const PooledTokens& row : step.pooled()) {
    const auto first = static_cast<int>(row.first), count = static_cast<int>(row.count);
    const array tokens = mx::slice(x, {first, 0}, {first + count, x.shape(1)});
    rows.push_back(mx::sum(mx::astype(tokens, mx::float32), 0, true));
  }
  return mx::concatenate(std::move(rows), 0);
}

}  // namespace

array pooled_rows(const Context& context, const array& x, const Step& step) {
  return context.is_fast() ? pooled_fast(x, step) : pooled_plain(x, step);
}

}  // namespace tandem::tensor
