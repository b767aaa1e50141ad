#include "tensor/cpu_op.h"

#include <fmt/format.h>
#include <mlx/backend/cpu/encoder.h>

#include <algorithm>

#include "tensor/host.h"
#include "tensor/step_memory.h"

namespace tandem::tensor {

namespace {

/// Handles without ownership: the evaluation keeps the buffers until its tasks are done.
std::vector<array> borrowed(const std::vector<array>& arrays) {
  std::vector<array> out;
  for (const array& a : arrays) out.push_back(array::unsafe_weak_copy(a));
  return out;
}

}  // namespace

void CpuOp::eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
  for (array& out : outputs) allocate(out);
  mx::cpu::get_command_encoder(stream()).dispatch(
      [function = function_, in = borrowed(inputs), out = borrowed(outputs)]() mutable {
        if (CpuCall call = (*function)(in, out)) call();
      });
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

void allocate(array& out) {
  if (out.data_shared_ptr()) return;
  if (StepMemory* memory = StepMemory::current()) return memory->give(out);
  out.set_data(mx::allocator::malloc(out.nbytes()));
  out.data<std::byte>();  // moves memory that was a device's to where the host writes
  settle_copies();
}

void view_columns(array& out, const array& buffer, int64_t stride, int64_t offset) {
  const auto rows = static_cast<size_t>(out.shape(0)), width = static_cast<size_t>(out.shape(1));
  const auto step = static_cast<size_t>(stride), at = static_cast<size_t>(offset);
  if (out.data_shared_ptr()) {
    for (size_t r = 0; r < rows; ++r)
      std::copy_n(buffer.data<float>() + r * step + at, width, out.data<float>() + r * width);
    return;
  }
  const bool is_whole = step == width || rows <= 1;
  array::Flags flags = buffer.flags();
  flags.contiguous = flags.row_contiguous = is_whole;
  flags.col_contiguous = is_whole && (rows <= 1 || width == 1);
  out.copy_shared_buffer(buffer, {stride, 1}, flags, rows == 0 ? 0 : (rows - 1) * step + width,
                         offset);
}

void share(array& out, const array& in) {
  if (!out.data_shared_ptr()) return out.copy_shared_buffer(in);
  view_columns(out, in, static_cast<int64_t>(row_stride(in)), 0);
}

size_t row_stride(const array& matrix) {
  if (matrix.ndim() != 2 || (matrix.shape(1) > 1 && matrix.strides(1) != 1))
    throw std::invalid_argument("[row_stride] expected a matrix with contiguous rows");
  return matrix.shape(0) == 1 ? static_cast<size_t>(matrix.shape(1))
                              : static_cast<size_t>(matrix.strides(0));
}

}  // namespace tandem::tensor
