#include "kernels/norm.h"

#include <cmath>

namespace tandem::kernels {
namespace {

void normalise(const RmsNormArgs& args, const float* x, float* out) {
  float sum = 0.0f;
  for (size_t i = 0; i < args.width; ++i) sum += x[i] * x[i];
  const float factor = 1.0f / std::sqrt(sum / static_cast<float>(args.width) + args.eps);
  for (size_t i = 0; i < args.width; ++i) {
    const float weight = args.weight == nullptr ? 1.0f : args.weight[i] + args.weight_offset;
    out[i] = x[i] * factor * weight;
  }
}

}  // namespace

void rms_norm(WorkerPool& pool, const RmsNormArgs& args) {
  const size_t x_stride = args.x_stride == 0 ? args.width : args.x_stride;
  const size_t out_stride = args.out_stride == 0 ? args.width : args.out_stride;
  pool.parallel_for(args.rows, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      normalise(args, args.x + r * x_stride, args.out + r * out_stride);
    }
  });
}

void rms_norm_add(WorkerPool& pool, const RmsNormArgs& args, float* residual) {
  const size_t x_stride = args.x_stride == 0 ? args.width : args.x_stride;
  const size_t out_stride = args.out_stride == 0 ? args.width : args.out_stride;
  pool.parallel_for(args.rows, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      float* sum = residual + r * args.width;
      for (size_t i = 0; i < args.width; ++i) sum[i] += args.x[r * x_stride + i];
      normalise(args, sum, args.out + r * out_stride);
    }
  });
}

}  // namespace tandem::kernels
