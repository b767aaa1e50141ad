#include "app/auto_split.h"

#include "format/model_sizes.h"
#include "format/quantization_group.h"

namespace tandem::app {
topology::SplitChoice auto_split(const format::Checkpoint& checkpoint,
                                 uint32_t ranks,
                                 std::span<const double> shares,
                                 topology::Link link) {
  const auto sizes = format::read_sizes(checkpoint.config());
  if (!sizes) return {topology::Split::kTensor, sizes.error().message};
  topology::ModelShape shape{.layers = sizes->layers,
                             .heads = sizes->heads,
                             .kv_heads = sizes->kv_heads,
                             .head_dim = sizes->head_dim,
                             .value_dim = sizes->value_dim,
                             .mlp = sizes->mlp,
                             .vocab = sizes->vocab,
                             .expert_mlp = sizes->expert_mlp,
                             .window = {.heads = sizes->window.heads,
                                        .kv_heads = sizes->window.kv_heads,
                                        .head_dim = sizes->window.head_dim,
                                        .value_dim = sizes->window.value_dim},
                             .joined_layers = sizes->joined_layers()};
  if (ranks > 1) {
    const auto group = format::quantization_group(checkpoint);
    if (group) shape.quant_group = *group;
  }
  return topology::choose_split({.shape = shape,
                                 .ranks = ranks,
                                 .shares = shares,
                                 .link = link,
                                 .weight_bytes = checkpoint.weight_bytes()});
}

}  // namespace tandem::app
