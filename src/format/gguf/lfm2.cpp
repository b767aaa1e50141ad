// LFM2: layers without KV heads convolve in place of attention.
#include "format/gguf/lfm2.h"

namespace tandem::format::gguf_arch {

Status complete_lfm2(const GgufMetadata& metadata, nlohmann::json& config) {
  const auto kv_heads = metadata.list("attention.head_count_kv");
  const uint64_t layers = metadata.layers();
  if (kv_heads.size() < layers)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("gguf: metadata {} should list {} numbers",
                             metadata.full("attention.head_count_kv"), layers)};
  std::vector<bool> convolves;
  for (uint64_t i = 0; i < layers; ++i) convolves.push_back(kv_heads[i] == 0);
  config["layer_types"] = gguf_layer_types(convolves, "conv");
  config["norm_eps"] = config["rms_norm_eps"];
  config["block_auto_adjust_ff_dim"] = false;
  if (metadata.number("attention.sliding_window").value_or(0) == 0) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("gguf: {} is not supported in this architecture",
                           metadata.full("attention.sliding_window"))};
}

std::vector<GgufName> lfm2_names() {
  return {{"output_norm", "model.embedding_norm"},  // of some files
          {"token_embd_norm", "model.embedding_norm"},
          {"attn_norm", "operator_norm"},
          {"ffn_norm", "ffn_norm"},
          {"attn_output", "self_attn.out_proj"},
          {"attn_q_norm", "self_attn.q_layernorm"},
          {"attn_k_norm", "self_attn.k_layernorm"},
          {"shortconv.conv", "conv.conv"},
          {"shortconv.in_proj", "conv.in_proj"},
          {"shortconv.out_proj", "conv.out_proj"},
          {"ffn_gate", "feed_forward.gate_proj"},
          {"ffn_up", "feed_forward.up_proj"},
          {"ffn_down", "feed_forward.down_proj"}};
}

GgufArchitecture lfm2() {
  return {.name = "lfm2",
          .model_type = "lfm2",
          .names = lfm2_names(),
          .fields = {{"conv_L_cache", "shortconv.l_cache"}},
          .conversions = {{"conv.conv", with_last_axis}},
          .complete = complete_lfm2};
}

}  // namespace tandem::format::gguf_arch
