#include "tensor/gather.h"

#include <algorithm>

#include "tensor/host.h"

namespace tandem::tensor {

namespace {

/// `rows` outlive the graph.
array take_fast(const array& x, const std::vector<uint32_t>& rows) {
  const mx::Shape shape = {static_cast<int>(rows.size()), x.shape(1)};
  return cpu_op("TakeRows", shape, mx::float32, {x}, [&rows](const auto& in, auto& out) -> CpuCall {
    allocate(out[0]);
    return [&rows, from = in[0].template data<float>(), stride = row_stride(in[0]),
            width = static_cast<size_t>(in[0].shape(1)), to = out[0].template data<float>()] {
      for (size_t i = 0; i < rows.size(); ++i)
        std::copy_n(from + rows[i] * stride, width, to + i * width);
    };
  });
}

/// A matrix of floats in memory.
struct ColumnsFrom {
  const float* first;
  size_t stride;
  size_t width;
};

}  // namespace

array take_rows(const array& x, const std::vector<uint32_t>& rows) {
  return mx::take(x, from_host(rows), 0);
}

array take_outputs(const Context& context, const array& x, const Step& step) {
  return context.is_fast() ? take_fast(x, step.outputs()) : take_rows(x, step.outputs());
}

std::vector<array> split_columns(const Context& context, const array& x, uint32_t width) {
  const int rows = x.shape(0), columns = static_cast<int>(width), count = x.shape(1) / columns;
  if (!context.is_fast()) return mx::split(x, count, 1);
  const std::vector<mx::Shape> shapes(static_cast<size_t>(count), {rows, columns});
  return cpu_ops(
      "SplitColumns", shapes, mx::float32, {x}, [](const auto& in, auto& out) -> CpuCall {
        const bool has_memory = out[0].data_shared_ptr() != nullptr;  // then these are copies
        int64_t at = 0;
        for (array& part : out) {
          view_columns(part, in[0], static_cast<int64_t>(row_stride(in[0])), at);
          at += part.shape(1);
        }
        return has_memory ? CpuCall() : CpuCall([] {});
      });
}

array join_columns(const Context& context, std::vector<array> parts) {
  if (!context.is_fast()) return mx::concatenate(std::move(parts), 1);
  int width = 0;
  for (const array& part : parts) width += part.shape(1);
  const mx::Shape shape = {parts[0].shape(0), width};
  return cpu_op("JoinColumns", shape, mx::float32, std::move(parts),
                [](const auto& in, auto& out) -> CpuCall {
                  allocate(out[0]);
                  std::vector<ColumnsFrom> from;
                  for (const array& part : in)
                    from.push_back({part.template data<float>(), row_stride(part),
                                    static_cast<size_t>(part.shape(1))});
                  return [from = std::move(from), to = out[0].template data<float>(),
                          rows = static_cast<size_t>(out[0].shape(0))] {
                    float* at = to;
                    for (size_t r = 0; r < rows; ++r)
                      for (const ColumnsFrom& part : from)
                        at = std::copy_n(part.first + r * part.stride, part.width, at);
                  };
                });
}

array zeros_after(const Context& context, const array& x, uint32_t width) {
  const mx::Shape shape = {x.shape(0), static_cast<int>(width)};
  if (!context.is_fast())
    return mx::depends({mx::contiguous(mx::zeros(shape, context.dtype))}, {x}).front();
  return cpu_op("Zeros", shape, mx::float32, {x}, [](const auto&, auto& out) -> CpuCall {
    allocate(out[0]);
    return
        [to = out[0].template data<float>(), size = out[0].size()] { std::fill_n(to, size, 0.0F); };
  });
}

}  // namespace tandem::tensor
