#include "tensor/matrix.h"

#include <algorithm>
#include <cstring>

#include "tensor/dtype.h"
#include "tensor/host.h"
#include "tensor/mapped_matrix.h"
#include "tensor/quantized_product.h"

namespace tandem::tensor {
namespace {

using topology::Range;

Error misfit(const Weights& module, std::string what) {
  return {ErrorCode::kCorrupt, fmt::format("{}: {}", module.path(), what)};
}

/// Columns [begin, end) of a row-major matrix as an array of its own on the default device.
array copy_columns(const format::Tensor& t, size_t begin, size_t end) {
  const auto rows = static_cast<size_t>(t.shape[0]);
  const size_t size = format::size_of(t.dtype);
  const size_t stride = t.bytes.size() / rows;
  const size_t width = (end - begin) * size;
  std::vector<std::byte> copy(rows * width);
  for (size_t r = 0; r < rows; ++r)
    std::memcpy(copy.data() + r * width, t.bytes.data() + r * stride + begin * size, width);
  const mx::Shape shape = {static_cast<int>(rows), static_cast<int>(end - begin)};
  return own_array(copy.data(), shape, mlx_dtype(t.dtype));
}

array as_type(const array& x, mx::Dtype dtype) {
  if (x.dtype() == dtype) return x;
  array out = mx::astype(x, dtype);
  mx::eval(out);
  return out;
}

void check_width(const Weights& module, const format::Tensor& weight, uint32_t inputs, int bits) {
  const auto stored = static_cast<int64_t>(
      bits == 0 ? inputs : uint64_t{inputs} * static_cast<uint64_t>(bits) / 32);
  if (weight.shape.size() != 2 || weight.shape[1] != stored)
    throw LoadFailure(misfit(module, fmt::format("the matrix does not have {} columns", inputs)));
}

void check_cut(const Weights& module, Range columns, int group) {
  const auto g = static_cast<uint32_t>(group);
  if (columns.begin % g != 0 || columns.end % g != 0)
    throw LoadFailure(
        {ErrorCode::kInvalid, fmt::format("{}: columns {} to {} cut a quantization group of {}",
                                          module.path(), columns.begin, columns.end, group)});
}

/// Zeros where the checkpoint has none.
std::vector<float> bias_of(const MatrixSource& s) {
  if (!s.module.has("bias")) return std::vector<float>(s.outputs());
  std::vector<float> out;
  for (const Range rows : s.runs()) {
    const auto part = s.module.vector("bias", rows);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

/// Stored columns [begin, end) of matrices that lie one below the other.
array stacked(const std::vector<format::Tensor>& runs, size_t begin, size_t end) {
  std::vector<array> out;
  for (const format::Tensor& run : runs) out.push_back(copy_columns(run, begin, end));
  if (out.size() == 1) return out[0];
  array all = mx::concatenate(out, 0);
  mx::eval(all);
  return all;
}

}  // namespace

std::vector<Range> MatrixSource::runs() const {
  std::vector<Range> out = {rows};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

uint32_t MatrixSource::outputs() const {
  uint32_t out = 0;
  for (const Range run : runs()) out += run.size();
  return out;
}

Matrix::Matrix(const std::vector<MatrixSource>& sources,
               uint32_t inputs,
               Range columns,
               bool with_bias)
    : context_(sources.front().module.context()), columns_(columns.size()) {
  for (const MatrixSource& s : sources) {
    widths_.push_back(s.outputs());
    const auto quantization = s.module.quantization();
    check_width(s.module, s.module.raw("weight", Range{s.rows.begin, s.rows.begin}), inputs,
                quantization ? quantization->bits : 0);
    if (quantization) check_cut(s.module, columns, quantization->group_size);
    if (!context_.is_fast()) load_plain(s, columns, with_bias);
  }
  if (context_.is_fast()) load_packed(sources, columns);
  const bool any_bias =
      with_bias && std::ranges::any_of(sources, [](const auto& s) { return s.module.has("bias"); });
  if (!context_.is_fast() || !any_bias) return;
  auto bias = std::make_shared<std::vector<float>>();
  for (const MatrixSource& s : sources) {
    const auto part = bias_of(s);
    bias->insert(bias->end(), part.begin(), part.end());
  }
  bias_ = std::move(bias);
}

void Matrix::load_plain(const MatrixSource& s, Range columns, bool with_bias) {
  std::vector<format::Tensor> weights, scales, biases;
  bool has_biases = false;
  for (const Range rows : s.runs()) {
    const MappedMatrix mapped = map(s.module, rows);
    require_finite(mapped, {0, rows.size()}, columns);
    weights.push_back(mapped.weight);
    scales.push_back(mapped.scales);
    biases.push_back(mapped.biases);
    has_biases = mapped.has_biases();
  }
  const auto quantization = s.module.quantization();
  const auto stored = [&](size_t column) {
    return quantization ? column * static_cast<size_t>(quantization->bits) / 32 : column;
  };
  Plain out{.weight = stacked(weights, stored(columns.begin), stored(columns.end))};
  if (quantization) {
    out.quantization = *quantization;
    const auto group = static_cast<size_t>(quantization->group_size);
    const auto load = [&](const std::vector<format::Tensor>& numbers) {
      const array stored_part = stacked(numbers, columns.begin / group, columns.end / group);
      const array part = has_biases ? as_type(stored_part, context_.dtype) : stored_part;
      s.module.count_bytes(part.nbytes());
      return part;
    };
    out.scales = load(scales);
    if (has_biases) out.biases = load(biases);
  } else {
    out.weight = as_type(out.weight, context_.dtype);
  }
  s.module.count_bytes(out.weight.nbytes());
  if (with_bias && s.module.has("bias")) {
    out.bias = as_type(from_host(bias_of(s)), context_.dtype);
  }
  plain_.push_back(std::move(out));
}

array Matrix::Plain::multiply(const array& x) const {
  const array y = scales ? quantized_product(x, weight, *scales, biases, quantization)
                         : mx::matmul(x, mx::transpose(weight));
  return bias ? mx::add(y, *bias) : y;
}

std::vector<array> Matrix::multiply(const array& x) const {
  if (context_.is_fast()) return multiply_packed(x);
  std::vector<array> out;
  for (const Plain& p : plain_) out.push_back(p.multiply(x));
  return out;
}

array Matrix::gather(const std::vector<uint32_t>& ids, uint32_t first) const {
  if (context_.is_fast()) return gather_packed(ids, first);
  std::vector<uint32_t> own;
  std::vector<float> keep;
  for (const uint32_t id : ids) {
    const bool is_own = id >= first && id - first < widths_.front();
    own.push_back(is_own ? id - first : 0);
    keep.push_back(is_own ? 1.0F : 0.0F);
  }
  const array rows = gather(from_host(own));
  if (std::ranges::find(keep, 0.0F) == keep.end()) return rows;
  const array mask = from_host(keep, {static_cast<int>(keep.size()), 1});
  return mx::multiply(rows, mx::astype(mask, rows.dtype()));
}

array Matrix::gather(const array& ids) const {
  const Plain& p = plain_.front();
  const array rows = mx::take(p.weight, ids, 0);
  if (!p.scales) return rows;
  std::optional<array> biases;
  if (p.biases) biases = mx::take(*p.biases, ids, 0);
  const auto& [bits, group, mode] = p.quantization;
  return mx::dequantize(rows, mx::take(*p.scales, ids, 0), biases, group, bits,
                        std::string(format::name(mode)), std::nullopt, context_.dtype);
}

}  // namespace tandem::tensor
