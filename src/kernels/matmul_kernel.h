// The matrix product over packed panels, for any vector type and any format.
#pragma once

#include <type_traits>

#include "kernels/dense_matmul_kernel.h"
#include "kernels/quantized_matmul_kernel.h"

namespace tandem::kernels {

/// Calls kernel.run(row, rows, panel, panels, scratch) for the blocks of items [begin, end).
template <class Kernel>
void run_items(const MatmulTask& task, size_t begin, size_t end, float* scratch) {
  const Kernel kernel{task};
  const size_t all = task.w->panels();
  while (begin < end) {
    const size_t row = begin / all * task.row_block, panel = begin % all;
    const size_t left = task.args.rows - row, rows = left < task.row_block ? left : task.row_block;
    const size_t panels = all - panel < end - begin ? all - panel : end - begin;
    kernel.run(row, rows, panel, panels, scratch);
    begin += panels;
  }
}

template <class V>
void matmul_range(const MatmulTask& task, size_t begin, size_t end, float* scratch) {
  const auto run = [&]<class Kernel>(std::type_identity<Kernel>) {
    run_items<Kernel>(task, begin, end, scratch);
  };
  const auto run_bits = [&]<int kBits>(std::integral_constant<int, kBits>) {
    if (task.takes_codes()) return run(std::type_identity<QuantizedKernel<V, kBits>>());
    run(std::type_identity<DenseKernel<V, DequantizedFormat<V, kBits>>>());
  };
  const auto run_type = [&]<ScalarType kType>(std::integral_constant<ScalarType, kType>) {
    run(std::type_identity<DenseKernel<V, DenseFormat<V, kType>>>());
  };
  switch (task.w->stored_bits()) {
    case 2:
      return run_bits(std::integral_constant<int, 2>());
    case 4:
      return run_bits(std::integral_constant<int, 4>());
    case 8:
      return run_bits(std::integral_constant<int, 8>());
    default:
      break;
  }
  switch (task.w->scalar_type()) {
    case ScalarType::kF32:
      return run_type(std::integral_constant<ScalarType, ScalarType::kF32>());
    case ScalarType::kF16:
      return run_type(std::integral_constant<ScalarType, ScalarType::kF16>());
    case ScalarType::kBf16:
      return run_type(std::integral_constant<ScalarType, ScalarType::kBf16>());
  }
}

}  // namespace tandem::kernels
