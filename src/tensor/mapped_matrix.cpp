#include "tensor/mapped_matrix.h"

#include "tensor/dtype.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

kernels::QuantizedView quantized_view(const MappedMatrix& m,
                                      kernels::Slice rows,
                                      kernels::Slice columns) {
  return {.codes = m.weight.bytes.data(),
          .scales = m.scales.bytes.data(),
          .biases = m.biases.bytes.data(),
          .scale_type = scalar_type(m.scales.dtype),
          .rows = m.outputs(),
          .cols = m.inputs(),
          .bits = static_cast<uint32_t>(m.quantization->bits),
          .group = static_cast<uint32_t>(m.quantization->group_size),
          .row_slice = rows,
          .col_slice = columns};
}

kernels::DenseView dense_view(const MappedMatrix& m, kernels::Slice rows, kernels::Slice columns) {
  return {.data = m.weight.bytes.data(),
          .type = scalar_type(m.weight.dtype),
          .rows = m.outputs(),
          .cols = m.inputs(),
          .row_slice = rows,
          .col_slice = columns};
}

}  // namespace

size_t MappedMatrix::inputs() const {
  const auto stored = static_cast<size_t>(weight.shape[1]);
  return quantization ? stored * 32 / static_cast<size_t>(quantization->bits) : stored;
}

bool MappedMatrix::is_like(const MappedMatrix& other) const {
  return quantization == other.quantization && weight.dtype == other.weight.dtype &&
         scales.dtype == other.scales.dtype;
}

Result<kernels::PackedMatrix> pack(std::span<const MappedMatrix> matrices,
                                   kernels::Slice rows,
                                   kernels::Slice columns) {
  if (!matrices.front().quantization) {
    std::vector<kernels::DenseView> views;
    for (const MappedMatrix& m : matrices) views.push_back(dense_view(m, rows, columns));
    return kernels::PackedMatrix::from_dense(views);
  }
  std::vector<kernels::QuantizedView> views;
  for (const MappedMatrix& m : matrices) views.push_back(quantized_view(m, rows, columns));
  return kernels::PackedMatrix::from_quantized(views);
}

kernels::PackedMatrix packed_or_throw(const Weights& module, Result<kernels::PackedMatrix> packed) {
  if (!packed) {
    Error error = packed.error();
    error.message = fmt::format("{}: {}", module.path(), error.message);
    throw LoadFailure(std::move(error));
  }
  module.count_bytes(packed->bytes());
  return std::move(packed).value();
}

array own_array(const void* data, const mx::Shape& shape, mx::Dtype dtype) {
  const array host = from_host(data, shape, dtype);
  if (mx::default_device() == mx::Device::cpu) return host;
  array device = mx::maximum(host, host);  // out of managed memory, where a copy would leave it
  mx::eval(device);
  return device;
}

}  // namespace tandem::tensor
