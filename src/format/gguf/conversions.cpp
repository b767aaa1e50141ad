#include "format/gguf/conversions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "format/layouts/scalars.h"

namespace tandem::format {
namespace {

size_t row_bytes_of(const DerivedTensor& tensor) {
  size_t bytes = size_of(tensor.dtype);
  for (size_t i = 1; i < tensor.shape.size(); ++i) bytes *= static_cast<size_t>(tensor.shape[i]);
  return bytes;
}

/// Rows [begin, end) of `order` out of the source, read in runs of neighbours.
Result<Tensor> gather_rows(const DerivedTensor& source,
                           const std::vector<int64_t>& order,
                           RowRange rows) {
  std::vector<int64_t> shape = source.shape;
  shape[0] = rows.end - rows.begin;
  NewTensor out(source.dtype, std::move(shape));
  const size_t row = row_bytes_of(source);
  std::byte* to = out.bytes.data();
  for (int64_t i = rows.begin; i < rows.end;) {
    const int64_t first = order[static_cast<size_t>(i)];
    int64_t count = 1;
    while (i + count < rows.end && order[static_cast<size_t>(i + count)] == first + count) ++count;
    const auto run = source.make({first, first + count});
    if (!run) return run;
    std::memcpy(to, run->bytes.data(), static_cast<size_t>(count) * row);
    to += static_cast<size_t>(count) * row;
    i += count;
  }
  return out.tensor;
}

/// Each row of `source` with its parts of `size` bytes in another order.
Result<Tensor> gather_columns(const DerivedTensor& source,
                              const std::vector<int64_t>& order,
                              size_t size,
                              RowRange rows) {
  const auto stored = source.make(rows);
  if (!stored) return stored;
  NewTensor out(source.dtype, stored->shape);
  const size_t line = order.size() * size;
  for (size_t at = 0; at < out.bytes.size(); at += line)
    for (size_t i = 0; i < order.size(); ++i)
      std::memcpy(out.bytes.data() + at + i * size,
                  stored->bytes.data() + at + static_cast<size_t>(order[i]) * size, size);
  return out.tensor;
}

/// The same bytes in another shape with as many rows.
DerivedTensor reshaped(DerivedTensor tensor, std::vector<int64_t> shape) {
  auto make = [source = tensor, shape](RowRange rows) {
    auto made = source.make(rows);
    if (!made) return made;
    made->shape = shape;
    made->shape[0] = rows.end - rows.begin;
    return made;
  };
  return {.dtype = tensor.dtype, .shape = std::move(shape), .make = std::move(make)};
}

/// A half of the second axis of [experts, rows, …].
Result<DerivedTensor> half_of(const DerivedTensor& tensor, bool is_second) {
  if (tensor.shape.size() < 2 || tensor.shape[1] % 2 != 0)
    return Error{ErrorCode::kCorrupt, "it has no two halves"};
  DerivedTensor out = {.dtype = tensor.dtype, .shape = tensor.shape};
  out.shape[1] /= 2;
  out.make = [source = tensor, shape = out.shape, is_second](RowRange rows) -> Result<Tensor> {
    const auto both = source.make(rows);
    if (!both) return both;
    std::vector<int64_t> own = shape;
    own[0] = rows.end - rows.begin;
    NewTensor half(source.dtype, std::move(own));
    const size_t experts = static_cast<size_t>(rows.end - rows.begin);
    const size_t bytes = experts == 0 ? 0 : half.bytes.size() / experts;
    for (size_t e = 0; e < experts; ++e)
      std::memcpy(half.bytes.data() + e * bytes,
                  both->bytes.data() + (2 * e + (is_second ? 1 : 0)) * bytes, bytes);
    return half.tensor;
  };
  return out;
}

}  // namespace

Result<DerivedTensor> whole_tensor(const Checkpoint& from, const std::string& name) {
  auto stored = from.describe(name);
  if (!stored) return stored.error();
  return DerivedTensor{.dtype = stored->dtype,
                       .shape = std::move(stored->shape),
                       .make = [&from, name](RowRange rows) { return from.tensor(name, rows); }};
}

Result<DerivedTensor> with_rows(DerivedTensor tensor, std::vector<int64_t> rows) {
  const int64_t all = tensor.shape.empty() ? 0 : tensor.shape[0];
  if (std::ranges::any_of(rows, [all](int64_t row) { return row < 0 || row >= all; }))
    return Error{ErrorCode::kCorrupt,
                 fmt::format("it has {} rows, and {} were expected", all, rows.size())};
  DerivedTensor out = {.dtype = tensor.dtype, .shape = tensor.shape};
  out.shape[0] = static_cast<int64_t>(rows.size());
  out.make = [source = std::move(tensor), order = std::move(rows)](RowRange range) {
    return gather_rows(source, order, range);
  };
  return out;
}

Result<DerivedTensor> with_columns(DerivedTensor tensor, std::vector<int64_t> parts) {
  const auto count = static_cast<int64_t>(parts.size());
  if (tensor.shape.empty() || count == 0 || tensor.shape.back() % count != 0)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("its rows of {} cannot be cut into {}",
                             tensor.shape.empty() ? 0 : tensor.shape.back(), count)};
  const size_t size = static_cast<size_t>(tensor.shape.back() / count) * size_of(tensor.dtype);
  DerivedTensor out = {.dtype = tensor.dtype, .shape = tensor.shape};
  out.make = [source = std::move(tensor), order = std::move(parts), size](RowRange rows) {
    return gather_columns(source, order, size, rows);
  };
  return out;
}

Result<DerivedTensor> with_values(DerivedTensor tensor, float (*change)(float)) {
  if (tensor.dtype != Dtype::kF32 && tensor.dtype != Dtype::kF16 && tensor.dtype != Dtype::kBF16)
    return Error{ErrorCode::kCorrupt, "it is quantized, which such a tensor never is"};
  DerivedTensor out = {.dtype = Dtype::kF32, .shape = tensor.shape};
  out.make = [source = std::move(tensor), change](RowRange rows) -> Result<Tensor> {
    const auto stored = source.make(rows);
    if (!stored) return stored;
    NewTensor made(Dtype::kF32, stored->shape);
    for (size_t i = 0; i < made.bytes.size() / sizeof(float); ++i)
      put_scalar(made.bytes.data(), Dtype::kF32, i,
                 change(scalar_at(stored->bytes.data(), stored->dtype, i)));
    return made.tensor;
  };
  return out;
}

Result<DerivedTensor> without_one(DerivedTensor tensor, const nlohmann::json&) {
  return with_values(std::move(tensor), [](float x) { return x - 1; });
}

Result<DerivedTensor> with_last_axis(DerivedTensor tensor, const nlohmann::json&) {
  std::vector<int64_t> shape = tensor.shape;
  if (shape.size() == 2) shape.push_back(1);
  return reshaped(std::move(tensor), std::move(shape));
}

Result<DerivedTensor> as_matrix(DerivedTensor tensor, const nlohmann::json&) {
  if (tensor.shape.size() != 1) return tensor;
  DerivedTensor out = {.dtype = tensor.dtype, .shape = {1, tensor.shape[0]}};
  out.make = [source = std::move(tensor)](RowRange rows) -> Result<Tensor> {
    auto row = source.make({0, rows.end > rows.begin ? source.shape[0] : 0});
    if (row) row->shape = {rows.end - rows.begin, source.shape[0]};
    return row;
  };
  return out;
}

Result<DerivedTensor> as_logarithm(DerivedTensor tensor, const nlohmann::json&) {
  return with_values(std::move(tensor), [](float x) { return std::log(-x); });
}

Result<DerivedTensor> first_half(DerivedTensor tensor, const nlohmann::json&) {
  return half_of(tensor, false);
}

Result<DerivedTensor> second_half(DerivedTensor tensor, const nlohmann::json&) {
  return half_of(tensor, true);
}

}  // namespace tandem::format
