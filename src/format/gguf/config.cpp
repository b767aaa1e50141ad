// GGUF metadata in the spelling of config.json.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "format/gguf/architecture.h"

namespace tandem::format {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostLayers = 1024;  // beyond, a file is damaged

Error lacks(const GgufMetadata& metadata, std::string_view key) {
  return {ErrorCode::kCorrupt, fmt::format("gguf: metadata {} is missing", metadata.full(key))};
}

Status add_field(const GgufMetadata& metadata, const GgufField& field, Json& config) {
  Json value = metadata.value(field.key);
  if (value.is_null()) {
    if (!field.otherwise) return lacks(metadata, field.key);
    value = *field.otherwise;
  }
  if (!value.is_null()) config[field.field] = std::move(value);
  return {};
}

/// Layers and the shape of attention; counts that differ between layers are settled by families.
Status add_sizes(const GgufMetadata& metadata, Json& config) {
  if (metadata.layers() == 0) return lacks(metadata, "block_count");
  if (metadata.layers() > kMostLayers)
    return Error{ErrorCode::kCorrupt, fmt::format("gguf: metadata {} should be at most {}",
                                                  metadata.full("block_count"), kMostLayers)};
  config["num_hidden_layers"] = metadata.layers();
  if (const auto further = metadata.number("nextn_predict_layers"))
    config["num_nextn_predict_layers"] = *further;
  const auto heads = metadata.largest("attention.head_count");
  if (!heads || *heads == 0) return lacks(metadata, "attention.head_count");
  config["num_attention_heads"] = *heads;
  config["num_key_value_heads"] = metadata.largest("attention.head_count_kv").value_or(*heads);
  for (const GgufField& field :
       {GgufField{"hidden_size", "embedding_length"},
        GgufField{"max_position_embeddings", "context_length"},
        GgufField{"head_dim", "attention.key_length", Json()},
        GgufField{"rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5},
        GgufField{"rope_theta", "rope.freq_base", 10000.0}})
    if (Status added = add_field(metadata, field, config); !added) return added;
  if (const auto width = metadata.largest("feed_forward_length"); width && *width != 0)
    config["intermediate_size"] = *width;
  const int64_t vocab = metadata.rows("token_embd.weight");
  if (vocab == 0) return Error{ErrorCode::kCorrupt, "gguf: no token_embd.weight"};
  config["vocab_size"] = vocab;
  config["tie_word_embeddings"] = !metadata.has("output.weight");
  return {};
}

/// Which part of a head is turned, where not all of it is.
void add_partial_rope(const GgufMetadata& metadata, Json& config) {
  const auto turned = metadata.number("rope.dimension_count");
  const uint64_t width =
      config.contains("head_dim")
          ? gguf_count(config, "head_dim")
          : gguf_count(config, "hidden_size") / gguf_count(config, "num_attention_heads");
  if (turned && *turned != 0 && *turned < width)
    config["partial_rotary_factor"] = static_cast<double>(*turned) / static_cast<double>(width);
}

/// Yarn's parameters beside the factor and the context.
Status add_yarn(const GgufMetadata& metadata, Json& scaling) {
  for (const auto& [field, key] : {std::pair{"beta_fast", "rope.scaling.yarn_beta_fast"},
                                   std::pair{"beta_slow", "rope.scaling.yarn_beta_slow"},
                                   std::pair{"attention_factor", "rope.scaling.yarn_attn_factor"}})
    if (const auto value = metadata.real(key)) scaling[field] = *value;
  // The converter leaves mscale out, which is 1 wherever mscale_all_dim is said.
  if (const auto all = metadata.real("rope.scaling.yarn_log_multiplier"))
    scaling["mscale_all_dim"] = *all;
  const double share = metadata.real("rope.scaling.yarn_ext_factor").value_or(1);
  if (share == 1) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("gguf: rope.scaling.yarn_ext_factor {} is not supported; 1 is", share)};
}

/// Divisors of frequencies, which the converter works out from llama3's parameters.
Status add_divisors(const GgufMetadata& metadata, Json& config) {
  if (!metadata.has("rope_freqs.weight")) return {};
  auto divisors = metadata.floats("rope_freqs.weight");
  if (!divisors) return divisors.error();
  config["rope_scaling"] = {{"rope_type", "factors"}, {"factors", *divisors}};
  return {};
}

Status add_rope_scaling(const GgufMetadata& metadata, Json& config) {
  const std::string* said = metadata.text("rope.scaling.type");
  const double old = metadata.real("rope.scale_linear").value_or(1);  // of files of 2023
  const std::string type = said != nullptr ? *said : old != 1 ? "linear" : "none";
  if (type == "none" || type == "longrope") return add_divisors(metadata, config);
  if (type != "linear" && type != "yarn") {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("gguf: rope scaling {} is not supported; linear, yarn and longrope are", type)};
  }
  Json scaling = {{"rope_type", type},
                  {"factor", metadata.real("rope.scaling.factor").value_or(old)}};
  if (const auto original = metadata.number("rope.scaling.original_context_length"))
    scaling["original_max_position_embeddings"] = *original;
  if (type == "yarn")
    if (Status added = add_yarn(metadata, scaling); !added) return added;
  config["rope_scaling"] = std::move(scaling);
  return {};
}

/// A flag for each layer, or the number of layers of which the last sees everything.
void add_windows(const GgufMetadata& metadata, Json& config) {
  const auto window = metadata.number("attention.sliding_window");
  if (!window || *window == 0) return;
  config["sliding_window"] = *window;
  const uint64_t layers = metadata.layers();
  const auto period = metadata.number("attention.sliding_window_pattern");
  const auto flags = metadata.list("attention.sliding_window_pattern");
  if (!period && flags.size() < layers) return;
  std::vector<bool> has_window;
  for (uint64_t i = 0; i < layers; ++i)
    has_window.push_back(period ? *period == 0 || (i + 1) % *period != 0 : flags[i] != 0);
  config["layer_types"] = gguf_layer_types(has_window, "sliding_attention");
}

/// Which layers have no experts, where others have some.
void add_dense_layers(const GgufMetadata& metadata, Json& config) {
  Json dense = Json::array();
  const uint64_t layers = metadata.layers();
  for (uint64_t i = 0; i < layers; ++i)
    if (!metadata.has(i, "ffn_down_exps.weight")) dense.push_back(i);
  if (!dense.empty() && dense.size() < layers) config["mlp_only_layers"] = std::move(dense);
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

Result<Json> config_from_gguf(const Gguf& gguf, const GgufFloats& read) {
  const std::string* name = gguf.text("general.architecture");
  if (name == nullptr) return Error{ErrorCode::kCorrupt, "gguf: no general.architecture"};
  const auto architecture = find_gguf_architecture(*name);
  if (!architecture) return architecture.error();
  const GgufMetadata metadata(gguf, *name, read);
  Json config = {{"model_type", architecture->model_type}};
  if (Status added = add_sizes(metadata, config); !added) return added.error();
  add_partial_rope(metadata, config);
  if (Status added = add_rope_scaling(metadata, config); !added) return added.error();
  add_windows(metadata, config);
  add_dense_layers(metadata, config);
  for (const GgufField& field : architecture->fields)
    if (Status added = add_field(metadata, field, config); !added) return added.error();
  if (architecture->complete != nullptr)
    if (Status completed = architecture->complete(metadata, config); !completed)
      return completed.error();
  add_token_ids(gguf, config);
  return config;
}

std::vector<GgufField> gguf_experts() {
  return {{"num_experts", "expert_count"},
          {"num_experts_per_tok", "expert_used_count"},
          {"moe_intermediate_size", "expert_feed_forward_length"}};
}

void add_biased_experts(GgufArchitecture& architecture, const char* experts, const char* shared) {
  architecture.names.insert(architecture.names.end(),
                            {{"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
                             {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                             {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                             {"ffn_down_shexp", "mlp.shared_experts.down_proj"}});
  architecture.fields.insert(architecture.fields.end(),
                             {{experts, "expert_count"},
                              {"num_experts_per_tok", "expert_used_count"},
                              {"moe_intermediate_size", "expert_feed_forward_length"},
                              {shared, "expert_shared_count", nullptr},
                              {"first_k_dense_replace", "leading_dense_block_count", nullptr},
                              {"n_group", "expert_group_count", nullptr},
                              {"topk_group", "expert_group_used_count", nullptr},
                              {"routed_scaling_factor", "expert_weights_scale", 1.0},
                              {"norm_topk_prob", "expert_weights_norm", false}});
}

uint64_t gguf_count(const Json& config, const char* field) {
  const auto found = config.find(field);
  if (found == config.end() || !found->is_number_integer() || *found < 0) return 0;
  return found->get<uint64_t>();
}

Status check_gguf_gating(const GgufMetadata& metadata, uint64_t function) {
  constexpr std::string_view kKey = "expert_gating_func";
  const uint64_t found = metadata.number(kKey).value_or(function);
  if (found == function || found == 0) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("gguf: {} {} is not supported in this architecture; {} is",
                           metadata.full(kKey), found, function)};
}

Json gguf_layer_types(const std::vector<bool>& flags, const char* special) {
  Json types = Json::array();
  for (const bool flag : flags) types.push_back(flag ? special : "full_attention");
  return types;
}

}  // namespace tandem::format
