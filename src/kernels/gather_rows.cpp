#include "base/check.h"
#include "kernels/code_layout.h"
#include "kernels/matmul.h"

namespace tandem::kernels {
namespace {

void read_quantized_row(const PackedMatrix& w, size_t row, float* out) {
  const CodeLayout layout = code_layout(w);
  const uint32_t mask = (1u << layout.bits) - 1;
  const size_t o = row % PackedMatrix::kPanel;
  const std::byte* panel = w.panel(row / PackedMatrix::kPanel);
  for (size_t g = 0; g < w.inputs() / layout.group; ++g, panel += layout.group_bytes()) {
    const float scale = load_scalar(panel, layout.type, o);
    const float bias = layout.kind == CodeKind::kAffine
                           ? load_scalar(panel, layout.type, PackedMatrix::kPanel + o)
                           : 0.0f;
    for (size_t c = 0; c < layout.group; ++c) {
      const uint32_t byte = static_cast<uint32_t>(panel[layout.code_byte(c, o)]);
      const float product =
          value_of_code(layout.kind, (byte >> layout.code_shift(c)) & mask) * scale;
      *out++ = product + bias;
    }
  }
}

void read_dense_row(const PackedMatrix& w, size_t row, float* out) {
  const ScalarType type = w.scalar_type();
  for (size_t c = 0; c < w.inputs(); ++c) {
    out[c] = load_scalar(w.panel(row / PackedMatrix::kPanel), type,
                         dense_offset(type, c, row % PackedMatrix::kPanel));
  }
}

}  // namespace

void gather_rows(
    WorkerPool& pool, const PackedMatrix& w, const uint32_t* ids, size_t count, float* out) {
  pool.parallel_for(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      TANDEM_CHECK(ids[i] < w.outputs(), "row {} of {}", ids[i], w.outputs());
      float* row = out + i * w.inputs();
      w.is_quantized() ? read_quantized_row(w, ids[i], row) : read_dense_row(w, ids[i], row);
    }
  });
}

}  // namespace tandem::kernels
