#include "tensor/mapped_matrix.h"

#include <algorithm>
#include <future>

#include "format/finite.h"
#include "tensor/dtype.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

using format::QuantMode;

kernels::ScalarType scale_type(const MappedMatrix& m) {
  if (m.has_biases()) return scalar_type(m.scales.dtype);
  return m.quantization->mode == QuantMode::kNvfp4 ? kernels::ScalarType::kE4m3
                                                   : kernels::ScalarType::kE8m0;
}

kernels::CodeKind code_kind(QuantMode mode) {
  return mode == QuantMode::kAffine  ? kernels::CodeKind::kAffine
         : mode == QuantMode::kMxfp8 ? kernels::CodeKind::kE4m3
                                     : kernels::CodeKind::kE2m1;
}

kernels::QuantizedView quantized_view(const MappedMatrix& m,
                                      kernels::Slice rows,
                                      kernels::Slice columns) {
  return {.codes = m.weight.bytes.data(),
          .scales = m.scales.bytes.data(),
          .biases = m.biases.bytes.data(),
          .scale_type = scale_type(m),
          .rows = m.outputs(),
          .cols = m.inputs(),
          .bits = static_cast<uint32_t>(m.quantization->bits),
          .group = static_cast<uint32_t>(m.quantization->group_size),
          .kind = code_kind(m.quantization->mode),
          .is_in_float32 = m.is_in_float32,
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
format::Window window_of(const MappedMatrix& m,
                         kernels::Slice rows,
                         kernels::Slice columns,
                         size_t per) {
  const size_t width = m.inputs() / per;
  return {.width = width,
          .first_row = rows.begin,
          .end_row = std::min(rows.end, m.outputs()),
          .first_column = std::min(columns.begin / per, width),
          .end_column = std::min(columns.end / per, width)};
}

Status finite_or_corrupt(const MappedMatrix& m, const char* leaf, bool is_finite) {
  if (is_finite) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("{}.{} holds a number that is NaN or infinite: the file is damaged, fetch "
                  "or convert the model again",
                  m.name, leaf)};
}

/// E4M3 is NaN where all bits but the sign are set.
bool has_nan_e4m3(const format::Tensor& tensor, const format::Window& window) {
  return format::greatest_byte(tensor, window, 0x7f) == 0x7f;
}

/// Of codes that are floats and scales in bytes. Powers of two whose product with the largest float
/// of 8 bits, 448, is no float32 count as infinite.
Status check_finite_floats(const MappedMatrix& m, kernels::Slice rows, kernels::Slice columns) {
  constexpr uint8_t kGreatestExponent = 246;
  const auto groups = window_of(m, rows, columns, static_cast<size_t>(m.quantization->group_size));
  const bool is_finite = m.quantization->mode == QuantMode::kNvfp4
                             ? !has_nan_e4m3(m.scales, groups)
                             : format::greatest_byte(m.scales, groups, 0xff) <= kGreatestExponent;
  Status scales = finite_or_corrupt(m, "scales", is_finite);
  if (!scales || m.quantization->mode != QuantMode::kMxfp8) return scales;
  return finite_or_corrupt(m, "weight", !has_nan_e4m3(m.weight, window_of(m, rows, columns, 1)));
}

/// Codes and scales of the shapes and types of their mode.
Status check_quantized(const MappedMatrix& m) {
  if (m.weight.dtype != format::Dtype::kU32)
    return Error{ErrorCode::kCorrupt, fmt::format("{}: codes should be of type U32, are {}", m.name,
                                                  format::name(m.weight.dtype))};
  const size_t groups = m.inputs() / static_cast<size_t>(m.quantization->group_size);
  const std::vector<int64_t> expected = {m.weight.shape[0], static_cast<int64_t>(groups)};
  const bool fits = m.has_biases() ? m.biases.shape == expected && m.scales.dtype == m.biases.dtype
                                   : m.scales.dtype == format::Dtype::kU8;
  if (m.scales.shape == expected && fits) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("{}: the scales{} are not [{}, {}] of {}: config.json's quantization "
                  "({}) is another than the file's, or the file is damaged",
                  m.name, m.has_biases() ? " or biases" : "", expected[0], expected[1],
                  m.has_biases() ? "one type" : "bytes", format::name(m.quantization->mode))};
}

}  // namespace

MappedMatrix map(const Weights& module, topology::Range rows) {
  MappedMatrix out{.name = module.path(),
                   .weight = module.raw("weight", rows),
                   .quantization = module.quantization(),
                   .is_in_float32 = module.is_in_float32()};
  if (out.quantization) out.scales = module.raw("scales", rows);
  if (out.has_biases()) out.biases = module.raw("biases", rows);
  if (const Status fits = check_layout(out); !fits) throw LoadFailure(fits.error());
  return out;
}

Status check_layout(const MappedMatrix& m) {
  const bool has_floats = !m.quantization || m.has_biases();
  const format::Tensor& numbers = m.quantization ? m.scales : m.weight;
  if (has_floats && !is_float(numbers.dtype))
    return Error{ErrorCode::kUnsupported, fmt::format("{}: weights of type {} are not supported",
                                                      m.name, format::name(numbers.dtype))};
  return m.quantization ? check_quantized(m) : Status();
}

Status check_finite(const MappedMatrix& m, kernels::Slice rows, kernels::Slice columns) {
  const auto check = [&](const char* leaf, const format::Tensor& tensor, size_t per) {
    return finite_or_corrupt(m, leaf, format::is_finite(tensor, window_of(m, rows, columns, per)));
  };
  if (!m.quantization) return check("weight", m.weight, 1);
  if (!m.has_biases()) return check_finite_floats(m, rows, columns);
  const auto group = static_cast<size_t>(m.quantization->group_size);
  Status scales = check("scales", m.scales, group);
  return scales ? check("biases", m.biases, group) : scales;
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

namespace {

Result<kernels::PackedMatrix> pack_one(const MatricesOf& map,
                                       uint32_t index,
                                       kernels::Slice rows,
                                       kernels::Slice columns) {
  try {
    return pack_here(map(index), rows, columns);
  } catch (const LoadFailure& failure) {
    return failure.error();
  }
}

}  // namespace

std::vector<kernels::PackedMatrix> pack_all(const Weights& module,
                                            uint32_t count,
                                            const MatricesOf& map,
                                            kernels::Slice rows,
                                            kernels::Slice columns) {
  std::vector<std::optional<Result<kernels::PackedMatrix>>> packed(count);
  module.context().workers->parallel_for(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      packed[i] = pack_one(map, static_cast<uint32_t>(i), rows, columns);
  });
  std::vector<kernels::PackedMatrix> out;
  for (auto& one : packed) out.push_back(packed_or_throw(module, *std::move(one)));
  return out;
}

array own_array(const void* data, const mx::Shape& shape, mx::Dtype dtype) {
  const array host = from_host(data, shape, dtype);
  if (mx::default_device() == mx::Device::cpu) return host;
  array device = mx::maximum(host, host);  // out of managed memory, where a copy would leave it
  mx::eval(device);
  return device;
}

}  // namespace tandem::tensor
