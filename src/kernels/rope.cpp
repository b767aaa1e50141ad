#include "kernels/rope.h"

#include <cmath>

namespace tandem::kernels {

void rope_table(WorkerPool& pool,
                const uint32_t* positions,
                size_t tokens,
                const float* inverse_frequencies,
                size_t pairs,
                float* cosine,
                float* sine) {
  pool.parallel_for(tokens, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      for (size_t p = 0; p < pairs; ++p) {
        const float angle = static_cast<float>(positions[t]) * inverse_frequencies[p];
        cosine[t * pairs + p] = std::cos(angle);
        sine[t * pairs + p] = std::sin(angle);
      }
    }
  });
}

void rope(WorkerPool& pool, const RopeArgs& args) {
  const size_t stride = args.token_stride == 0 ? args.heads * args.head_dim : args.token_stride;
  const size_t first = args.interleaved ? 2 : 1;
  const size_t second = args.interleaved ? 1 : args.pairs;
  pool.parallel_for(args.tokens, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const float* cosine = args.cosine + t * args.pairs;
      const float* sine = args.sine + t * args.pairs;
      for (size_t h = 0; h < args.heads; ++h) {
        float* x = args.x + t * stride + h * args.head_dim;
        for (size_t p = 0; p < args.pairs; ++p) {
          const float a = x[p * first] * args.scale;
          const float b = x[p * first + second] * args.scale;
          x[p * first] = a * cosine[p] - b * sine[p];
          x[p * first + second] = a * sine[p] + b * cosine[p];
        }
      }
    }
  });
}

}  // namespace tandem::kernels
