#include "tensor/mapped_matrix.h"

#include <algorithm>
#include <future>

#include "format/finite.h"
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

bool is_float(format::Dtype dtype) {
  return dtype == format::Dtype::kF32 || dtype == format::Dtype::kF16 ||
         dtype == format::Dtype::kBF16;
}

/// Of a tensor that has one number for `per` columns of the matrix.
Status check_finite(const MappedMatrix& m,
                    const char* leaf,
                    const format::Tensor& tensor,
                    kernels::Slice rows,
                    kernels::Slice columns,
                    size_t per) {
  const size_t width = m.inputs() / per;
  const format::Window window = {.width = width,
                                 .first_row = rows.begin,
                                 .end_row = std::min(rows.end, m.outputs()),
                                 .first_column = std::min(columns.begin / per, width),
                                 .end_column = std::min(columns.end / per, width)};
  if (format::is_finite(tensor, window)) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("{}.{} holds a number that is NaN or infinite: the file is damaged, fetch "
                  "or convert the model again",
                  m.name, leaf)};
}

}  // namespace

MappedMatrix map(const Weights& module, topology::Range rows) {
  MappedMatrix out{.name = module.path(),
                   .weight = module.raw("weight", rows),
                   .quantization = module.quantization()};
  if (out.quantization) {
    out.scales = module.raw("scales", rows);
    out.biases = module.raw("biases", rows);
  }
  if (const Status fits = check_layout(out); !fits) throw LoadFailure(fits.error());
  return out;
}

Status check_layout(const MappedMatrix& m) {
  const format::Tensor& numbers = m.quantization ? m.scales : m.weight;
  if (!is_float(numbers.dtype))
    return Error{ErrorCode::kUnsupported, fmt::format("{}: weights of type {} are not supported",
                                                      m.name, format::name(numbers.dtype))};
  if (!m.quantization) return {};
  if (m.weight.dtype != format::Dtype::kU32)
    return Error{ErrorCode::kCorrupt, fmt::format("{}: codes should be of type U32, are {}", m.name,
                                                  format::name(m.weight.dtype))};
  const size_t groups = m.inputs() / static_cast<size_t>(m.quantization->group_size);
  const std::vector<int64_t> expected = {m.weight.shape[0], static_cast<int64_t>(groups)};
  if (m.scales.shape == expected && m.biases.shape == expected && m.scales.dtype == m.biases.dtype)
    return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{}: the scales or biases are not [{}, {}] of one type: config.json's "
                           "quantization is another than the file's, or the file is damaged",
                           m.name, expected[0], expected[1])};
}

Status check_finite(const MappedMatrix& m, kernels::Slice rows, kernels::Slice columns) {
  if (!m.quantization) return check_finite(m, "weight", m.weight, rows, columns, 1);
  const auto group = static_cast<size_t>(m.quantization->group_size);
  Status scales = check_finite(m, "scales", m.scales, rows, columns, group);
  return scales ? check_finite(m, "biases", m.biases, rows, columns, group) : scales;
}

void require_finite(const MappedMatrix& m, topology::Range rows, topology::Range columns) {
  const Status finite = check_finite(m, {rows.begin, rows.end}, {columns.begin, columns.end});
  if (!finite) throw LoadFailure(finite.error());
}

size_t MappedMatrix::inputs() const {
  const auto stored = static_cast<size_t>(weight.shape[1]);
  return quantization ? stored * 32 / static_cast<size_t>(quantization->bits) : stored;
}

bool MappedMatrix::is_like(const MappedMatrix& other) const {
  return quantization == other.quantization && weight.dtype == other.weight.dtype &&
         scales.dtype == other.scales.dtype;
}

namespace {

Result<kernels::PackedMatrix> pack_unchecked(std::span<const MappedMatrix> matrices,
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

Status check_all_finite(std::span<const MappedMatrix> matrices,
                        kernels::Slice rows,
                        kernels::Slice columns) {
  for (const MappedMatrix& m : matrices)
    if (Status finite = check_finite(m, rows, columns); !finite) return finite;
  return {};
}

/// The packed matrices, or why not; errors name the first of them.
Result<kernels::PackedMatrix> named(const MappedMatrix& first,
                                    Result<kernels::PackedMatrix> packed) {
  if (packed) return packed;
  Error error = packed.error();
  error.message = fmt::format("{}: {}", first.name, error.message);
  return error;
}

}  // namespace

Result<kernels::PackedMatrix> pack_here(std::span<const MappedMatrix> matrices,
                                        kernels::Slice rows,
                                        kernels::Slice columns) {
  if (const Status finite = check_all_finite(matrices, rows, columns); !finite)
    return finite.error();
  return named(matrices.front(), pack_unchecked(matrices, rows, columns));
}

Result<kernels::PackedMatrix> pack(std::span<const MappedMatrix> matrices,
                                   kernels::Slice rows,
                                   kernels::Slice columns) {
  // Beside the packing, which takes far longer and then finds what was read here in memory.
  auto checked =
      std::async(std::launch::async, [&] { return check_all_finite(matrices, rows, columns); });
  auto packed = pack_unchecked(matrices, rows, columns);
  if (const Status finite = checked.get(); !finite) return finite.error();
  return named(matrices.front(), std::move(packed));
}

kernels::PackedMatrix packed_or_throw(const Weights& module, Result<kernels::PackedMatrix> packed) {
  if (!packed) throw LoadFailure(packed.error());
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
