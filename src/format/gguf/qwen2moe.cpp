// Qwen 1.5 and 2 with experts, beside which every token takes one more.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

GgufArchitecture qwen2moe() {
  GgufArchitecture out = {.name = "qwen2moe",
                          .model_type = "qwen2_moe",
                          .names = {{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
                                    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                    {"ffn_down_shexp", "mlp.shared_expert.down_proj"}},
                          .fields = gguf_experts(),
                          .conversions = {{"shared_expert_gate", as_matrix}}};
  out.fields.push_back({"shared_expert_intermediate_size", "expert_shared_feed_forward_length"});
  out.fields.push_back({"norm_topk_prob", "expert_weights_norm", false});
  return out;
}

}  // namespace tandem::format::gguf_arch
