#include "tensor/gather.h"

#include <algorithm>

#include "tensor/host.h"

namespace tandem::tensor {

array take_rows(const Context& context, const array& x, const std::vector<uint32_t>& rows) {
  const auto count = static_cast<int>(rows.size());
  if (!context.is_fast()) return mx::take(x, from_host(rows), 0);
  return cpu_op("TakeRows", {count, x.shape(1)}, mx::float32, {x},
                [rows](const auto& in, auto& out) {
                  allocate(out[0]);
                  const size_t stride = row_stride(in[0]);
                  const auto width = static_cast<size_t>(in[0].shape(1));
                  for (size_t i = 0; i < rows.size(); ++i)
                    std::copy_n(in[0].template data<float>() + rows[i] * stride, width,
                                out[0].template data<float>() + i * width);
                });
}

array zeros_after(const Context& context, const array& x, uint32_t width) {
  const mx::Shape shape = {x.shape(0), static_cast<int>(width)};
  if (!context.is_fast())
    return mx::depends({mx::contiguous(mx::zeros(shape, context.dtype))}, {x}).front();
  return cpu_op("Zeros", shape, mx::float32, {x}, [](const auto&, auto& out) {
    allocate(out[0]);
    std::fill_n(out[0].template data<float>(), out[0].size(), 0.0F);
  });
}

}  // namespace tandem::tensor
