#include "kernels/rope.h"

#include <cmath>

#include "base/check.h"
#include "kernels/kernel_table.h"
#include "kernels/share.h"

namespace tandem::kernels {

void rope_table(WorkerPool& pool,
                const uint32_t* positions,
                size_t tokens,
                const float* inverse_frequencies,
                size_t pairs,
                float* cosine,
                float* sine) {
  constexpr size_t kCost = 32;  // of a sine and a cosine, in floats touched
  share_rows(pool, tokens, pairs * kCost, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      for (size_t p = 0; p < pairs; ++p) {
        const float angle = static_cast<float>(positions[t]) * inverse_frequencies[p];
        cosine[t * pairs + p] = std::cos(angle);
        sine[t * pairs + p] = std::sin(angle);
      }
    }
  });
}

void rope(WorkerPool& pool, const RopeArgs& given) {
  RopeArgs args = given;
  TANDEM_CHECK(2 * args.pairs <= args.head_dim, "[rope] {} pairs of {}", args.pairs, args.head_dim);
  if (args.token_stride == 0) args.token_stride = args.heads * args.head_dim;
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, args.tokens, args.heads * args.pairs * 2,
             [&](size_t begin, size_t end) { kernels.rope(args, begin, end); });
}

}  // namespace tandem::kernels
