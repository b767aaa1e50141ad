#include "tensor/cpu_op.h"

#include <fmt/format.h>

namespace tandem::tensor {

void CpuOp::eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
  // Inputs may still be on their way in the stream's thread; the function runs here.
  mx::synchronize(stream());
  function_(inputs, outputs);
}

void CpuOp::eval_gpu(const std::vector<array>&, std::vector<array>&) {
  throw std::runtime_error(fmt::format("[{}] runs on the CPU only", name_));
}

array cpu_op(const char* name,
             mx::Shape shape,
             mx::Dtype dtype,
             std::vector<array> inputs,
             CpuFunction function) {
  auto op = std::make_shared<CpuOp>(mx::default_stream(mx::Device::cpu), name, std::move(function));
  return array(std::move(shape), dtype, std::move(op), std::move(inputs));
}

std::vector<array> cpu_ops(const char* name,
                           std::vector<mx::Shape> shapes,
                           mx::Dtype dtype,
                           std::vector<array> inputs,
                           CpuFunction function) {
  auto op = std::make_shared<CpuOp>(mx::default_stream(mx::Device::cpu), name, std::move(function));
  const std::vector<mx::Dtype> dtypes(shapes.size(), dtype);
  return array::make_arrays(std::move(shapes), dtypes, op, inputs);
}

void allocate(array& out) { out.set_data(mx::allocator::malloc(out.nbytes())); }

void view_columns(array& out, const array& buffer, int64_t stride, int64_t offset) {
  const bool whole = stride == out.shape(1) || out.shape(0) <= 1;
  array::Flags flags = buffer.flags();
  flags.contiguous = flags.row_contiguous = whole;
  flags.col_contiguous = whole && (out.shape(0) == 1 || out.shape(1) == 1);
  const size_t rows = static_cast<size_t>(out.shape(0));
  const size_t span =
      rows == 0 ? 0 : (rows - 1) * static_cast<size_t>(stride) + static_cast<size_t>(out.shape(1));
  out.copy_shared_buffer(buffer, {stride, 1}, flags, span, offset);
}

size_t row_stride(const array& matrix) {
  if (matrix.ndim() != 2 || (matrix.shape(1) > 1 && matrix.strides(1) != 1))
    throw std::invalid_argument("[row_stride] expected a matrix with contiguous rows");
  return matrix.shape(0) == 1 ? static_cast<size_t>(matrix.shape(1))
                              : static_cast<size_t>(matrix.strides(0));
}

}  // namespace tandem::tensor
