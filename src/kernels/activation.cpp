#include "kernels/activation.h"

#include <cmath>

namespace tandem::kernels {
namespace {

template <class F>
void gated(WorkerPool& pool, const GatedArgs& args, F activate) {
  const size_t gate_stride = args.gate_stride == 0 ? args.width : args.gate_stride;
  const size_t up_stride = args.up_stride == 0 ? args.width : args.up_stride;
  const size_t out_stride = args.out_stride == 0 ? args.width : args.out_stride;
  pool.parallel_for(args.rows, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      for (size_t i = 0; i < args.width; ++i) {
        const float up = args.up[r * up_stride + i];
        args.out[r * out_stride + i] = activate(args.gate[r * gate_stride + i]) * up;
      }
    }
  });
}

}  // namespace

void swiglu(WorkerPool& pool, const GatedArgs& args) {
  gated(pool, args, [](float x) { return x / (1.0f + std::exp(-x)); });
}

void geglu_tanh(WorkerPool& pool, const GatedArgs& args) {
  gated(pool, args, [](float x) {
    const float inner = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + std::tanh(inner));
  });
}

void add(WorkerPool& pool, float* y, const float* x, size_t count) {
  pool.parallel_for(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] += x[i];
  });
}

void scale(WorkerPool& pool, float* y, float factor, size_t count) {
  pool.parallel_for(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] *= factor;
  });
}

void softcap(WorkerPool& pool, float* x, float cap, size_t count) {
  pool.parallel_for(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) x[i] = cap * std::tanh(x[i] / cap);
  });
}

}  // namespace tandem::kernels
