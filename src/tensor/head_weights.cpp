#include "tensor/head_weights.h"

#include <cstring>
#include <numeric>

#include "kernels/matmul.h"
#include "tensor/dtype.h"

namespace tandem::tensor {
namespace {

using topology::Range;

[[noreturn]] void misshaped(const Weights& module, uint32_t outputs, uint32_t inputs) {
  throw LoadFailure({ErrorCode::kCorrupt, fmt::format("{}: the matrix of a head is not [{}, {}]",
                                                      module.path(), outputs, inputs)});
}

/// Of one head.
format::Tensor slice_of(const Weights& module, const char* leaf, uint32_t head) {
  format::Tensor one = module.raw(leaf, Range{head, head + 1});
  if (one.shape.size() != 3)
    throw LoadFailure(
        {ErrorCode::kCorrupt, fmt::format("{}.{} should have three axes", module.path(), leaf)});
  one.shape.erase(one.shape.begin());
  return one;
}

/// All of a matrix in float32, row by row.
std::vector<float> floats_of(const Weights& module, const MappedMatrix& matrix) {
  auto packed = pack_here(std::span(&matrix, 1), {}, {});
  if (!packed) throw LoadFailure(packed.error());
  std::vector<uint32_t> ids(matrix.outputs());
  std::iota(ids.begin(), ids.end(), 0U);
  std::vector<float> out(matrix.outputs() * matrix.inputs());
  const auto& workers = module.context().workers;
  if (workers) {
    kernels::gather_rows(*workers, *packed, ids.data(), ids.size(), out.data());
  } else {
    kernels::WorkerPool alone(1);
    kernels::gather_rows(alone, *packed, ids.data(), ids.size(), out.data());
  }
  return out;
}

format::Dtype turned_type(const MappedMatrix& matrix) {
  if (!matrix.quantization) return matrix.weight.dtype;
  return matrix.scales.dtype == format::Dtype::kF32 ? format::Dtype::kF32 : format::Dtype::kF16;
}

void put(float x, format::Dtype type, std::byte* to) {
  if (type == format::Dtype::kF32) {
    std::memcpy(to, &x, sizeof(x));
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const auto half = type == format::Dtype::kF16 ? kernels::to_f16(x)
                                                : static_cast<uint16_t>(bits >> 16);  // was bf16
  std::memcpy(to, &half, sizeof(half));
}

}  // namespace

std::vector<MappedMatrix> stacked_heads(const Weights& module,
                                        Range heads,
                                        uint32_t outputs,
                                        uint32_t inputs) {
  std::vector<MappedMatrix> out;
  for (uint32_t h = heads.begin; h < heads.end; ++h) {
    MappedMatrix one{.name = module.path(),
                     .weight = slice_of(module, "weight", h),
                     .quantization = module.quantization(),
                     .is_in_float32 = module.is_in_float32()};
    if (one.outputs() != outputs || one.inputs() != inputs) misshaped(module, outputs, inputs);
    if (one.quantization) {
      one.scales = slice_of(module, "scales", h);
      if (one.has_biases()) one.biases = slice_of(module, "biases", h);
    }
    if (const Status fits = check_layout(one); !fits) throw LoadFailure(fits.error());
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<MappedMatrix> row_heads(const Weights& module,
                                    Range heads,
                                    HeadRows rows,
                                    uint32_t inputs) {
  std::vector<MappedMatrix> out;
  for (uint32_t h = heads.begin; h < heads.end; ++h) {
    const uint32_t first = h * rows.stride;
    MappedMatrix one = map(module, {first + rows.taken.begin, first + rows.taken.end});
    if (one.inputs() != inputs) misshaped(module, rows.taken.size(), inputs);
    out.push_back(std::move(one));
  }
  return out;
}

MappedMatrix turned(const Weights& module, const MappedMatrix& matrix) {
  const std::vector<float> from = floats_of(module, matrix);
  const size_t rows = matrix.outputs(), columns = matrix.inputs();
  const format::Dtype type = turned_type(matrix);
  const size_t size = format::size_of(type);
  auto bytes = std::make_shared<std::vector<std::byte>>(from.size() * size);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      put(from[r * columns + c], type, bytes->data() + (c * rows + r) * size);
  MappedMatrix out{.name = matrix.name, .weight = {}, .quantization = {}};
  out.weight = {.dtype = type,
                .shape = {static_cast<int64_t>(columns), static_cast<int64_t>(rows)},
                .bytes = *bytes,
                .owner = bytes};
  return out;
}

}  // namespace tandem::tensor
