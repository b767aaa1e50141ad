// GGUF metadata and tensor names in the spelling of the Hugging Face layout.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "format/gguf.h"
#include "format/gguf_checkpoint.h"

namespace tandem::format {
namespace {

using Json = nlohmann::json;
using Pair = std::pair<std::string_view, std::string_view>;

/// model_type of each architecture.
constexpr std::array<Pair, 5> kArchitectures{{{"llama", "llama"},
                                              {"qwen2", "qwen2"},
                                              {"qwen3", "qwen3"},
                                              {"qwen3moe", "qwen3_moe"},
                                              {"gpt-oss", "gpt_oss"}}};

constexpr std::array<Pair, 3> kExperts{{{"num_experts", "expert_count"},
                                        {"num_experts_per_tok", "expert_used_count"},
                                        {"moe_intermediate_size", "expert_feed_forward_length"}}};

constexpr std::array<Pair, 3> kWhole{
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}}};

constexpr std::array<Pair, 15> kLayer{{
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"attn_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.switch_mlp.gate_proj"},
    {"ffn_up_exps", "mlp.switch_mlp.up_proj"},
    {"ffn_down_exps", "mlp.switch_mlp.down_proj"},
}};

/// What gpt-oss has elsewhere.
constexpr std::array<Pair, 3> kOfGptOss{{{"attn_sinks", "self_attn.sinks"},
                                         {"post_attention_norm", "post_attention_layernorm"},
                                         {"ffn_gate_inp", "mlp.router"}}};

template <size_t N>
std::string_view look_up(const std::array<Pair, N>& table, std::string_view key) {
  for (const auto& [from, to] : table) {
    if (from == key) return to;
  }
  return {};
}

Status add_rope_scaling(const Gguf& gguf, const std::string& prefix, Json& config) {
  const std::string* type = gguf.text(prefix + "rope.scaling.type");
  if (type == nullptr || *type == "none") return {};
  if (*type != "linear" && *type != "yarn") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("gguf: rope scaling {} is not supported", *type)};
  }
  Json scaling = {{"rope_type", *type},
                  {"factor", gguf.real(prefix + "rope.scaling.factor").value_or(1.0)}};
  if (const auto original = gguf.number(prefix + "rope.scaling.original_context_length")) {
    scaling["original_max_position_embeddings"] = *original;
  }
  config["rope_scaling"] = std::move(scaling);
  return {};
}

/// As OpenAI's config has it, whose yarn blends between broken pairs.
void rename_as_gpt_oss(Json& config) {
  config["num_local_experts"] = config["num_experts"];
  config["intermediate_size"] = config["moe_intermediate_size"];
  if (config.contains("rope_scaling")) config["rope_scaling"]["truncate"] = false;
}

void add_token_ids(const Gguf& gguf, Json& config) {
  if (const auto id = gguf.number("tokenizer.ggml.bos_token_id")) config["bos_token_id"] = *id;
  Json ends = Json::array();
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    if (const auto id = gguf.number(key)) {
      if (std::find(ends.begin(), ends.end(), Json(*id)) == ends.end()) ends.push_back(*id);
    }
  }
  if (!ends.empty()) config["eos_token_id"] = std::move(ends);
}

}  // namespace

std::string hugging_face_name(std::string_view gguf_name, std::string_view model_type) {
  const size_t dot = gguf_name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view kind = gguf_name.substr(dot + 1);
  std::string_view module = gguf_name.substr(0, dot);
  if (kind != "weight" && kind != "bias") return {};
  if (!module.starts_with("blk.")) {
    const std::string_view mapped = look_up(kWhole, module);
    return mapped.empty() ? std::string() : fmt::format("{}.{}", mapped, kind);
  }
  module.remove_prefix(4);
  int layer = 0;
  const auto [end, problem] = std::from_chars(module.data(), module.data() + module.size(), layer);
  if (problem != std::errc() || end == module.data() + module.size() || *end != '.') return {};
  module.remove_prefix(static_cast<size_t>(end - module.data()) + 1);
  std::string_view mapped;
  if (model_type == "gpt_oss") mapped = look_up(kOfGptOss, module);
  if (mapped.empty()) mapped = look_up(kLayer, module);
  if (mapped.empty()) return {};
  const std::string name = fmt::format("model.layers.{}.{}", layer, mapped);
  return mapped.ends_with("sinks") ? name : fmt::format("{}.{}", name, kind);
}

Result<Json> config_from_gguf(const Gguf& gguf) {
  const std::string* arch = gguf.text("general.architecture");
  if (arch == nullptr) return Error{ErrorCode::kCorrupt, "gguf: no general.architecture"};
  const std::string_view model_type = look_up(kArchitectures, *arch);
  if (model_type.empty()) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("gguf: architecture {} is not supported; llama, qwen2, qwen3, "
                             "qwen3moe and gpt-oss are",
                             *arch)};
  }
  const std::string prefix = *arch + ".";
  Json config = {{"model_type", model_type}};
  const auto need = [&](const char* key, const char* gguf_key) -> Status {
    const auto value = gguf.number(prefix + gguf_key);
    if (!value)
      return Error{ErrorCode::kCorrupt,
                   fmt::format("gguf: metadata {}{} is missing", prefix, gguf_key)};
    config[key] = *value;
    return {};
  };
  for (const auto& [key, gguf_key] :
       {Pair{"num_hidden_layers", "block_count"}, Pair{"hidden_size", "embedding_length"},
        Pair{"intermediate_size", "feed_forward_length"},
        Pair{"num_attention_heads", "attention.head_count"},
        Pair{"max_position_embeddings", "context_length"}}) {
    const Status found = need(key.data(), gguf_key.data());
    if (!found) return found.error();
  }
  if (gguf.number(prefix + "expert_count")) {
    for (const auto& [key, gguf_key] : kExperts) {
      const Status found = need(key.data(), gguf_key.data());
      if (!found) return found.error();
    }
    config["norm_topk_prob"] = true;  // as ggml computes this architecture
  }
  config["num_key_value_heads"] = gguf.number(prefix + "attention.head_count_kv")
                                      .value_or(config["num_attention_heads"].get<uint64_t>());
  const auto head_dim = gguf.number(prefix + "attention.key_length")
                            .value_or(gguf.number(prefix + "rope.dimension_count").value_or(0));
  if (head_dim != 0) config["head_dim"] = head_dim;
  config["rms_norm_eps"] = gguf.real(prefix + "attention.layer_norm_rms_epsilon").value_or(1e-5);
  config["rope_theta"] = gguf.real(prefix + "rope.freq_base").value_or(10000.0);
  config["tie_word_embeddings"] = !gguf.tensors().contains("output.weight");
  // ggml's converter interleaves the rotated halves of llama's queries and keys, so rotation pairs
  // neighbours.
  if (*arch == "llama") config["rope_traditional"] = true;
  if (const auto window = gguf.number(prefix + "attention.sliding_window"))
    config["sliding_window"] = *window;
  const auto embedding = gguf.tensors().find("token_embd.weight");
  if (embedding == gguf.tensors().end() || embedding->second.shape.empty())
    return Error{ErrorCode::kCorrupt, "gguf: no token_embd.weight"};
  config["vocab_size"] = embedding->second.shape[0];
  const Status scaled = add_rope_scaling(gguf, prefix, config);
  if (!scaled) return scaled.error();
  if (model_type == "gpt_oss") rename_as_gpt_oss(config);
  add_token_ids(gguf, config);
  return config;
}

}  // namespace tandem::format
