#include "tensor/rotated.h"

#include "tensor/attention_paths.h"
#include "tensor/cpu_op.h"

namespace tandem::tensor {
namespace {

array rotated_fast(const Context& context,
                   const array& x,
                   kernels::RopeArgs heads,
                   const Rope& rope,
                   const Step& step) {
  const auto bind = [&rope, &step, heads, workers = context.workers](
                        const std::vector<array>& in, std::vector<array>& out) -> CpuCall {
    const bool has_memory = out[0].data_shared_ptr() != nullptr;  // then x was copied, once
    share(out[0], in[0]);
    CpuCall turn = [&rope, &step, heads, workers, first = out[0].data<float>(),
                    stride = row_stride(out[0])] {
      kernels::RopeArgs args = rope_args(rope, step);
      args.x = first;
      args.heads = heads.heads;
      args.head_dim = heads.head_dim;
      args.token_stride = stride;
      kernels::rope(*workers, args);
    };
    if (!has_memory) return turn;
    turn();
    return {};
  };
  return cpu_op("Rotate", x.shape(), mx::float32, {x}, bind);
}

}  // namespace

array rotated(const Context& context,
              const array& x,
              uint32_t heads,
              uint32_t head_dim,
              const Rope& rope,
              const Step& step) {
  if (context.is_fast())
    return rotated_fast(context, x, {.heads = heads, .head_dim = head_dim}, rope, step);
  const int tokens = x.shape(0), turned = static_cast<int>(heads * head_dim);
  const array own = mx::reshape(mx::slice(x, {0, 0}, {tokens, turned}),
                                {tokens, static_cast<int>(heads), static_cast<int>(head_dim)});
  const array rest = mx::slice(x, {0, turned}, x.shape());
  return mx::concatenate({mx::reshape(rotate(own, rope, step), {tokens, turned}), rest}, 1);
}

}  // namespace tandem::tensor
