#include "format/quantization_group.h"

#include <fmt/format.h>

#include <numeric>

namespace tandem::format {

Result<uint32_t> quantization_group(const Checkpoint& checkpoint, uint32_t layers) {
  uint32_t group = 1;
  for (uint32_t i = 0; i < layers; ++i) {
    for (const char* leaf :
         {"self_attn.o_proj", "self_attn.out_proj", "conv.out_proj", "mlp.down_proj",
          "mlp.switch_mlp.down_proj", "mlp.experts.0.down_proj", "feed_forward.w2",
          "block_sparse_moe.switch_mlp.down_proj", "block_sparse_moe.experts.0.w2"}) {
      const auto found = checkpoint.quantization(fmt::format("model.layers.{}.{}", i, leaf));
      if (!found) return found.error();
      if (!*found || (*found)->group_size <= 0) continue;
      group = std::lcm(group, static_cast<uint32_t>((*found)->group_size));
    }
  }
  return group;
}

}  // namespace tandem::format
