#include "format/gguf/latent.h"

namespace tandem::format::gguf_arch {
namespace {

/// The converter writes a tenth of mscale_all_dim, which equals mscale wherever it is said.
void settle_magnitudes(nlohmann::json& config) {
  const auto scaling = config.find("rope_scaling");
  if (scaling == config.end() || !scaling->contains("mscale_all_dim")) return;
  const double all = (*scaling)["mscale_all_dim"].get<double>() / 0.1;
  (*scaling)["mscale"] = (*scaling)["mscale_all_dim"] = all;
}

}  // namespace

Status complete_latent(const GgufMetadata& metadata, nlohmann::json& config) {
  // Files with kv_b in two parts give the width of latent keys as key_length, and that of heads
  // apart; older ones only that of heads.
  const auto key = metadata.number("attention.key_length_mla");
  const auto value = metadata.number("attention.value_length_mla");
  const uint64_t heads = key.value_or(metadata.number("attention.key_length").value_or(0));
  const uint64_t rope = gguf_count(config, "qk_rope_head_dim");
  if (heads <= rope)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("gguf: {} should be above rope.dimension_count {}, is {}",
                             metadata.full("attention.key_length_mla"), rope, heads)};
  config["qk_nope_head_dim"] = heads - rope;
  config["v_head_dim"] = value.value_or(metadata.number("attention.value_length").value_or(0));
  config["num_key_value_heads"] = config["num_attention_heads"];
  for (const char* of_others : {"head_dim", "partial_rotary_factor"}) config.erase(of_others);
  if (!metadata.has(0, "attn_q_a.weight")) config.erase("q_lora_rank");
  settle_magnitudes(config);
  return {};
}

void add_indexer(GgufArchitecture& architecture) {
  architecture.names.insert(architecture.names.end(),
                            {{"indexer.k_norm", "self_attn.indexer.k_norm"},
                             {"indexer.proj", "self_attn.indexer.weights_proj"},
                             {"indexer.attn_k", "self_attn.indexer.wk"},
                             {"indexer.attn_q_b", "self_attn.indexer.wq_b"}});
  architecture.fields.insert(architecture.fields.end(),
                             {{"index_n_heads", "attention.indexer.head_count"},
                              {"index_head_dim", "attention.indexer.key_length"},
                              {"index_topk", "attention.indexer.top_k"}});
}

GgufArchitecture latent_architecture(std::string_view name, std::string_view model_type) {
  GgufArchitecture out = {.name = name,
                          .model_type = model_type,
                          .names = {{"attn_q_a", "self_attn.q_a_proj"},
                                    {"attn_q_a_norm", "self_attn.q_a_layernorm"},
                                    {"attn_q_b", "self_attn.q_b_proj"},
                                    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
                                    {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
                                    {"attn_kv_b", "self_attn.kv_b_proj"},
                                    {"attn_k_b", "self_attn.embed_q"},
                                    {"attn_v_b", "self_attn.unembed_out"}},
                          .fields = {{"q_lora_rank", "attention.q_lora_rank", nullptr},
                                     {"kv_lora_rank", "attention.kv_lora_rank"},
                                     {"qk_rope_head_dim", "rope.dimension_count"}},
                          .complete = complete_latent};
  add_biased_experts(out);
  return out;
}

}  // namespace tandem::format::gguf_arch
