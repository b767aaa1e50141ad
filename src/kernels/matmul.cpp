#include "kernels/matmul.h"

#include <vector>

namespace tandem::kernels {

void matmul(WorkerPool& pool, const PackedMatrix& w, const MatmulArgs& args) {
  const size_t k = w.inputs();
  const size_t x_stride = args.x_stride == 0 ? k : args.x_stride;
  const size_t y_stride = args.y_stride == 0 ? w.outputs() : args.y_stride;
  WorkerPool inner(1);
  pool.parallel_for(w.outputs(), [&](size_t begin, size_t end) {
    std::vector<float> row(k);
    for (size_t n = begin; n < end; ++n) {
      const uint32_t id = static_cast<uint32_t>(n);
      gather_rows(inner, w, &id, 1, row.data());
      for (size_t r = 0; r < args.rows; ++r) {
        float sum = 0.0f;
        for (size_t i = 0; i < k; ++i) sum += args.x[r * x_stride + i] * row[i];
        if (args.bias != nullptr) sum += args.bias[n];
        float& y = args.y[r * y_stride + n];
        y = args.accumulate ? y + sum : sum;
      }
    }
  });
}

}  // namespace tandem::kernels
