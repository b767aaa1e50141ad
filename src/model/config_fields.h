// Reading the fields of a config.json strictly, for families.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"

namespace tandem::model {

using Json = nlohmann::json;

/// Carries an Error out of nested decoding; caught by decoded().
struct Refusal {
  Error error;
};

/// Throws a Refusal: "config: " and the message.
[[noreturn]] void refuse(ErrorCode code, std::string message);

/// The field, or null where it is missing or null.
const Json* find(const Json& json, const char* key);

// Each throws a Refusal (kCorrupt) that names the field when it is missing, unless there is an
// `otherwise`, of another type, or out of range.

/// Above 0, and no more than anything is counted to.
uint32_t count(const Json& json, const char* key);
double real(const Json& json, const char* key, std::optional<double> otherwise = std::nullopt);
double above_zero(const Json& json,
                  const char* key,
                  std::optional<double> otherwise = std::nullopt);
bool flag(const Json& json, const char* key, bool otherwise);
std::string text(const Json& json, const char* key, const char* otherwise);
/// Refuses (kUnsupported) another text than this where there is one.
void require_text(const Json& json, const char* key, const char* only);
/// Makes `layers`, one value for each, false where the field lists their indices.
void clear_listed(const Json& json, const char* key, std::vector<bool>& layers);

/// json, and the fields of `otherwise` that it lacks: for families whose configs leave some out.
Json with_defaults(Json json, const Json& otherwise);

/// rotary_dim, where there is one, as the partial_rotary_factor that others have.
Json with_rotary_dim(Json json);

/// The fields that llama and its relatives share, but for hidden_act.
Config decode_base(const Json& json);

/// The same, and a refusal of activations other than silu.
Config decode_silu(const Json& json);

/// And num_experts, num_experts_per_tok, moe_intermediate_size, norm_topk_prob, and which layers
/// have experts by decoder_sparse_step and mlp_only_layers: qwen's.
Config decode_with_experts(const Json& json);

/// n_routed_experts, n_shared_experts, which layers have them by first_k_dense_replace and
/// moe_layer_freq, and the scale and the groups of the choice, as GLM and DeepSeek call them.
void decode_routed_experts(const Json& json, Config& config);

/// The same, chosen by a biased sigmoid ("noaux_tc").
void decode_biased_routing(const Json& json, Config& config);

/// The fields of latent attention beside those of decode_silu(): q_lora_rank (where queries have
/// one), kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim; heads share one key.
Config decode_latent(const Json& json);

/// And biased routing: DeepSeek V3's, Kimi K2's.
Config decode_deepseek_v3(const Json& json);

/// And keys chosen by the lightning indexer: DeepSeek V3.2's, GLM 5's.
Config decode_deepseek_v32(const Json& json);

/// How queries grow with their position: rope_parameters of Ministral 3 and Mistral 4.
tensor::QueryScale decode_query_scale(const Json& json);

/// num_local_experts in every layer, each as wide as the config's MLP.
void decode_local_experts(const Json& json, Config& config);

/// Every sliding_window_pattern-th layer sees everything, the others sliding_window.
void decode_window_pattern(const Json& json, Config& config);

/// Which layers keep a state: those that layer_types, which must be there, calls `with_state`; the
/// others are full_attention.
std::vector<bool> decode_state_layers(const Json& json, const char* with_state, uint32_t layers);

/// Refuses a state that is larger than what a file that is not damaged has. `heads` and `dim` name
/// the fields that the shape comes from.
void check_state(const tensor::DeltaShape& shape, const char* heads, const char* dim);

/// Taps of convolutions: from 2 to what a file that is not damaged has.
uint32_t decode_taps(const Json& json, const char* key);

/// Refuses more experts of a token than there are.
void check_experts_of_token(const Config& config);

/// The rope of heads of `head_dim`, from rope_theta and rope_scaling, or rope_parameters that hold
/// both. `config` has max_positions.
std::shared_ptr<const tensor::Rope> decode_rope(const Json& json,
                                                const Config& config,
                                                uint32_t head_dim);

/// A rope of `dims` of the head's dimensions with a base of its own and nothing else.
std::shared_ptr<const tensor::Rope> plain_rope(uint32_t dims, double base);

/// Runs a decoder of a family; a Refusal becomes the result.
Result<Config> decoded(Config (*decode)(const Json&), const Json& json);

/// The same as a function: what an Arch has.
template <Config (*Decode)(const Json&)>
Result<Config> decode_as(const Json& json) {
  return decoded(Decode, json);
}

}  // namespace tandem::model
