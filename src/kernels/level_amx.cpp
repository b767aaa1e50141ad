// Compiled for CpuLevel::kAmx (levels.cmake); only called where the CPU has it.
#include "kernels/kernel_table.h"

#if defined(__AMX_INT8__) && defined(__AMX_BF16__)
#include "kernels/amx_attention_kernel.h"
#include "kernels/amx_matmul_kernel.h"
#include "kernels/matmul_kernel.h"

namespace tandem::kernels {
namespace {

/// Fewer rows are done sooner without tiles.
bool takes_tiles(const MatmulTask& task) { return task.takes_codes() && task.args.rows > 8; }

void prepare_amx(
    const MatmulTask& task, const float* x, size_t x_stride, size_t begin, size_t end) {
  if (!takes_tiles(task)) return avx512_kernels().prepare(task, x, x_stride, begin, end);
  const ByteRows rows(task);
  quantize_rows<Avx512Vec>(
      task, x, x_stride, begin, end,
      [&](Avx512Vec code, size_t row, size_t column) { rows.store(code, row, column); });
}

void matmul_amx(const MatmulTask& task, size_t begin, size_t end, float* scratch) {
  if (!takes_tiles(task)) return avx512_kernels().matmul(task, begin, end, scratch);
  run_quantized<AmxKernel>(task, begin, end, scratch);
}

size_t chunk_scratch(size_t head_dim, size_t value_dim) {
  return TileScratch::bytes(head_dim, value_dim) / sizeof(float);
}

void attend_chunk(const AttentionSpan& span, const SpanState& state, float* memory) {
  const auto scratch = TileScratch::at(reinterpret_cast<std::byte*>(memory), span.args->head_dim,
                                       span.args->value_dim);
  TileAttention<Avx512Vec>(span, state, scratch).run();
}

}  // namespace

const KernelTable& amx_kernels() {
  static const KernelTable table = [] {
    KernelTable out = avx512_kernels();
    out.prepare = prepare_amx;
    out.matmul = matmul_amx;
    out.chunks = {
        .queries = TileScratch::kQueries, .scratch = chunk_scratch, .attend_span = attend_chunk};
    return out;
  }();
  return table;
}

}  // namespace tandem::kernels
#else

namespace tandem::kernels {

const KernelTable& amx_kernels() { return avx512_kernels(); }

}  // namespace tandem::kernels
#endif
