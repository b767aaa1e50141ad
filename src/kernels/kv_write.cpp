#include "kernels/kv_write.h"

#include <cstring>

#include "kernels/share.h"

namespace tandem::kernels {

void kv_write(WorkerPool& pool, const KvWriteArgs& args) {
  const size_t width = args.kv_heads * args.head_dim;
  const size_t k_stride = args.k_stride == 0 ? width : args.k_stride;
  const size_t v_stride = args.v_stride == 0 ? width : args.v_stride;
  share_rows(pool, args.tokens, width, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const size_t slot = args.slots[t] * width;
      std::memcpy(args.k_pool + slot, args.k + t * k_stride, width * sizeof(float));
      std::memcpy(args.v_pool + slot, args.v + t * v_stride, width * sizeof(float));
    }
  });
}

}  // namespace tandem::kernels
