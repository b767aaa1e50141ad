#include "tensor/attention.h"

#include "tensor/attention_paths.h"

namespace tandem::tensor {

array attend(Pool& pool,
             const QueryKeyValue& x,
             const AttentionShape& shape,
             const Step& step,
             const Context& context,
             const ChosenKeys* chosen) {
  if (x.q.shape(1) != static_cast<int>(shape.heads * shape.head_dim) ||
      (!shape.only_reads &&
       x.k.shape(1) != static_cast<int>(pool.shape.kv_heads * pool.shape.head_dim)) ||
      shape.latent_dim != pool.shape.latent_dim || shape.value_dim != pool.shape.value_dim)
    throw std::invalid_argument(fmt::format(
        "[attend] {} query and {} key columns do not fit {} heads of {} over {} KV heads",
        x.q.shape(1), x.k.shape(1), shape.heads, shape.head_dim, pool.shape.kv_heads));
  if (!shape.sinks.empty() && (shape.softcap > 0 || shape.sinks.size() != shape.heads))
    throw std::invalid_argument(fmt::format("[attend] {} sinks for {} heads, cap {}",
                                            shape.sinks.size(), shape.heads, shape.softcap));
  const bool has_blocks = chosen != nullptr && chosen->has_blocks();
  if (has_blocks && (shape.window != 0 || shape.softcap > 0 || !shape.sinks.empty() ||
                     chosen->block % pool.shape.page_tokens != 0))
    throw std::invalid_argument(fmt::format(
        "[attend] blocks of {} in pages of {}, window {}, cap {}, {} sinks", chosen->block,
        pool.shape.page_tokens, shape.window, shape.softcap, shape.sinks.size()));
  if (step.spans(pool.group).size() != step.rows().size())
    throw std::invalid_argument("[attend] rows list no pages of layers that see a window");
  return context.is_fast() ? attend_fast(pool, x, shape, step, context, chosen)
                           : attend_plain(pool, x, shape, step, chosen);
}

}  // namespace tandem::tensor
