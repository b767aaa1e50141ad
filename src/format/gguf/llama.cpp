// Llama, Mistral before version 3, and Mixtral: llama's experts are Mixtral's.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

/// Rows of queries and keys are interleaved, so that rotation pairs neighbours.
static Status complete_llama(const GgufMetadata& metadata, nlohmann::json& config) {
  config["rope_traditional"] = true;
  const auto turned = metadata.number("rope.dimension_count");
  if (!config.contains("head_dim") && turned && *turned != 0) {  // as older files have it
    config["head_dim"] = *turned;
    config.erase("partial_rotary_factor");
  }
  if (metadata.number("expert_count").value_or(0) == 0) return {};
  config["model_type"] = "mixtral";
  return {};
}

GgufArchitecture llama() {
  return {.name = "llama",
          .model_type = "llama",
          .names = {{"ffn_gate_inp", "block_sparse_moe.gate"},
                    {"ffn_gate_exps", "block_sparse_moe.switch_mlp.gate_proj"},
                    {"ffn_up_exps", "block_sparse_moe.switch_mlp.up_proj"},
                    {"ffn_gate_up_exps", "block_sparse_moe.switch_mlp.gate_up_proj"},
                    {"ffn_down_exps", "block_sparse_moe.switch_mlp.down_proj"}},
          .fields = {{"num_local_experts", "expert_count", nullptr},
                     {"num_experts_per_tok", "expert_used_count", nullptr}},
          .complete = complete_llama};
}

}  // namespace tandem::format::gguf_arch
