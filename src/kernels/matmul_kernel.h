// The matrix product over packed panels, for any vector type and any format.
#pragma once

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

/// run_items() with the kernel for the matrix's codes, but for E4M3. Requires quantized weights.
template <template <int, CodeKind> class Kernel>
void run_quantized(const MatmulTask& task, size_t begin, size_t end, float* scratch) {
  if (task.w->code_kind() == CodeKind::kE2m1)
    return run_items<Kernel<4, CodeKind::kE2m1>>(task, begin, end, scratch);
  switch (task.w->stored_bits()) {
    case 2:
      return run_items<Kernel<2, CodeKind::kAffine>>(task, begin, end, scratch);
    case 4:
      return run_items<Kernel<4, CodeKind::kAffine>>(task, begin, end, scratch);
    default:
      return run_items<Kernel<8, CodeKind::kAffine>>(task, begin, end, scratch);
  }
}

template <class V>
struct Kernels {
  template <int kBits, CodeKind kKind>
  using Codes = QuantizedKernel<V, kBits, kKind>;
  template <int kBits, CodeKind kKind>
  using Dequantized = DenseKernel<V, DequantizedFormat<V, kBits, kKind>>;
  template <ScalarType kType>
  using Dense = DenseKernel<V, DenseFormat<V, kType>>;
};

template <class V>
void matmul_range(const MatmulTask& task, size_t begin, size_t end, float* scratch) {
  using Of = Kernels<V>;
  if (task.takes_codes()) return run_quantized<Of::template Codes>(task, begin, end, scratch);
  if (task.w->code_kind() == CodeKind::kE4m3)
    return run_items<typename Of::template Dequantized<8, CodeKind::kE4m3>>(task, begin, end,
                                                                            scratch);
  if (task.w->is_quantized())
    return run_quantized<Of::template Dequantized>(task, begin, end, scratch);
  switch (task.w->scalar_type()) {
    case ScalarType::kF32:
      return run_items<typename Of::template Dense<ScalarType::kF32>>(task, begin, end, scratch);
    case ScalarType::kF16:
      return run_items<typename Of::template Dense<ScalarType::kF16>>(task, begin, end, scratch);
    default:
      return run_items<typename Of::template Dense<ScalarType::kBf16>>(task, begin, end, scratch);
  }
}

}  // namespace tandem::kernels
