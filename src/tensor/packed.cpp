// The CPU fast path of Matrix.
#include <algorithm>
#include <numeric>

#include "kernels/matmul.h"
#include "tensor/mapped_matrix.h"
#include "tensor/matrix.h"

namespace tandem::tensor {
namespace {

using topology::Range;

/// Rows ids[i] - first of the matrix; zeros where it has no such row.
void gather_own(kernels::WorkerPool& workers,
                const kernels::PackedMatrix& matrix,
                const std::vector<uint32_t>& ids,
                uint32_t first,
                float* out) {
  const auto is_own = [&](uint32_t id) { return id >= first && id - first < matrix.outputs(); };
  if (first == 0 && std::ranges::all_of(ids, is_own))
    return kernels::gather_rows(workers, matrix, ids.data(), ids.size(), out);
  for (size_t i = 0; i < ids.size(); ++i) {
    float* row = out + i * matrix.inputs();
    const uint32_t own = ids[i] - first;
    if (is_own(ids[i]))
      kernels::gather_rows(workers, matrix, &own, 1, row);
    else
      std::fill_n(row, matrix.inputs(), 0.0F);
  }
}

}  // namespace

void Matrix::load_packed(const std::vector<MatrixSource>& sources, Range columns) {
  std::vector<MappedMatrix> mapped;
  std::vector<const MatrixSource*> source_of;
  for (const MatrixSource& s : sources)
    for (const Range rows : s.runs()) {
      mapped.push_back(map(s.module, rows));
      source_of.push_back(&s);
    }
  size_t at = 0;
  for (size_t begin = 0; begin < mapped.size();) {
    size_t end = begin + 1;
    while (end < mapped.size() && mapped[end].is_like(mapped[begin])) ++end;
    const std::span group(mapped.data() + begin, end - begin);
    auto packed =
        packed_or_throw(source_of[begin]->module, pack(group, {}, {columns.begin, columns.end}));
    const size_t outputs = packed.outputs();
    packed_.push_back({std::make_shared<const kernels::PackedMatrix>(std::move(packed)), at});
    at += outputs;
    begin = end;
  }
}

CpuCall Matrix::matmul_call(std::shared_ptr<kernels::WorkerPool> workers,
                            const std::vector<Packed>& packed,
                            const kernels::MatmulArgs& args) {
  if (packed.size() == 1)
    return [workers = std::move(workers), matrix = packed[0].matrix, args] {
      kernels::matmul(*workers, *matrix, args);
    };
  return [workers = std::move(workers), packed = packed, args] {
    for (const Packed& p : packed) {
      kernels::MatmulArgs part = args;
      part.y += p.at;
      if (part.bias != nullptr) part.bias += p.at;
      kernels::matmul(*workers, *p.matrix, part);
    }
  };
}

std::vector<array> Matrix::multiply_packed(const array& x) const {
  const size_t total = std::accumulate(widths_.begin(), widths_.end(), size_t{0});
  std::vector<mx::Shape> shapes;
  for (const uint32_t width : widths_) shapes.push_back({x.shape(0), static_cast<int>(width)});
  const auto run = [packed = packed_, bias = bias_, workers = context_.workers, total](
                       const std::vector<array>& inputs, std::vector<array>& outputs) -> CpuCall {
    const array& from = inputs[0];
    array all({from.shape(0), static_cast<int>(total)}, mx::float32, nullptr, {});
    allocate(all);
    const kernels::MatmulArgs args = {.x = from.data<float>(),
                                      .rows = static_cast<size_t>(from.shape(0)),
                                      .x_stride = row_stride(from),
                                      .y = all.data<float>(),
                                      .y_stride = total,
                                      .bias = bias ? bias->data() : nullptr};
    CpuCall call = matmul_call(workers, packed, args);
    const bool has_memory = outputs[0].data_shared_ptr() != nullptr;
    if (has_memory) call();  // whose result is then copied there
    int64_t at = 0;
    for (array& out : outputs) {
      view_columns(out, all, static_cast<int64_t>(total), at);
      at += out.shape(1);
    }
    return has_memory ? CpuCall() : std::move(call);
  };
  if (shapes.size() == 1) return {cpu_op("Matmul", shapes[0], mx::float32, {x}, run)};
  return cpu_ops("Matmul", std::move(shapes), mx::float32, {x}, run);
}

array Matrix::gather_packed(const std::vector<uint32_t>& ids, uint32_t first) const {
  const mx::Shape shape = {static_cast<int>(ids.size()), static_cast<int>(columns_)};
  return cpu_op("GatherRows", shape, mx::float32, {},
                [matrix = packed_.front().matrix, workers = context_.workers, &ids, first](
                    const auto&, auto& outputs) -> CpuCall {
                  allocate(outputs[0]);
                  return [matrix, workers, &ids, first, out = outputs[0].template data<float>()] {
                    gather_own(*workers, *matrix, ids, first, out);
                  };
                });
}

}  // namespace tandem::tensor
