#include "kernels/kv_write.h"

#include "base/check.h"
#include "kernels/kernel_table.h"
#include "kernels/share.h"

namespace tandem::kernels {

void kv_write(WorkerPool& pool, const KvWriteArgs& given) {
  KvWriteArgs args = given;
  if (args.value_dim == 0) args.value_dim = args.head_dim;
  const size_t width = args.kv_heads * args.head_dim;
  TANDEM_CHECK(args.kv_type != ScalarType::kBf16, "[kv_write] no pools of bf16");
  if (args.k_stride == 0) args.k_stride = width;
  if (args.v_stride == 0) args.v_stride = args.kv_heads * args.value_dim;
  RopeArgs rope;
  if (args.rope != nullptr) {
    rope = *args.rope;
    rope.x = args.k;
    rope.tokens = args.tokens;
    rope.heads = args.kv_heads;
    rope.head_dim = args.head_dim;
    rope.token_stride = args.k_stride;
    args.rope = &rope;
    TANDEM_CHECK(2 * rope.pairs <= rope.head_dim, "[kv_write] {} pairs of {}", rope.pairs,
                 rope.head_dim);
  }
  const KernelTable& kernels = kernels_of(pool.level());
  constexpr size_t kCost = 4;  // keys go to one line each
  share_rows(pool, args.tokens, width * kCost,
             [&](size_t begin, size_t end) { kernels.kv_write(args, begin, end); });
}

}  // namespace tandem::kernels
