// MiniMax M3: block-sparse attention after the first layers, which are dense in both parts; norms
// whose weights lie around 0; experts by a biased sigmoid, a shared one, a clamped gate everywhere.
#include <algorithm>

#include "model/arch/moe_layer.h"

namespace tandem::model::arch {
namespace {

constexpr const char* kExpertBlock = "block_sparse_moe";
constexpr uint32_t kMostBlocks = 1U << 20;  // that are chosen, or of positions in one

struct MiniMaxM3Layer : MoeLayer {
  MiniMaxM3Layer(const Config& c, const Weights& w, uint32_t index)
      : MoeLayer(c,
                 w,
                 index,
                 {.attention = {.qk_norm = c.has_qk_norm ? std::optional(c.rms_eps) : std::nullopt},
                  .experts = {.bias = c.has_expert_bias ? "e_score_correction_bias" : nullptr,
                              .shared = "shared_experts"},
                  .block = block_of(c, w, index)}) {}

  /// Some exporters keep the MLPs of dense layers where others have experts.
  static const char* block_of(const Config& c, const Weights& w, uint32_t index) {
    const bool is_there = (w / kExpertBlock).has("gate_proj.weight");
    return c.has_experts[index] || is_there ? kExpertBlock : "mlp";
  }
};

void require_number(const Json& json, const char* key, double only) {
  const double found = real(json, key, only);
  if (found != only)
    refuse(ErrorCode::kUnsupported, fmt::format("{} {} is not supported; {} is", key, found, only));
}

/// Which layers a list calls `yes`, and not `no`; numbers say it by not being 0.
std::vector<bool> listed_layers(
    const Json& json, const char* key, uint32_t layers, const char* yes, const char* no) {
  const Json& list = json.at(key);
  if (!list.is_array() || list.size() != layers)
    refuse(ErrorCode::kCorrupt, fmt::format("{} should have one entry for each layer", key));
  std::vector<bool> out;
  for (const Json& each : list) {
    const bool is_name = each == yes || each == no;
    if (!is_name && !each.is_number() && !each.is_boolean())
      refuse(ErrorCode::kUnsupported, fmt::format("{} lists {}, which is not supported; {} and {} "
                                                  "are",
                                                  key, each.dump(), yes, no));
    out.push_back(is_name ? each == yes : each != 0 && each != false);
  }
  return out;
}

/// The fields of sparse_attention_config, under their names there, also of configs that say them
/// outside of it.
Json sparse_fields(const Json& json) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"sparse_num_index_heads", "index_n_heads"},
      {"sparse_index_dim", "index_head_dim"},
      {"sparse_block_size", "index_block_size"},
      {"sparse_topk_blocks", "index_topk_blocks"},
      {"sparse_local_block", "index_local_blocks"},
      {"sparse_attention_freq", "sparse_attention_freq"}};
  const Json* nested = find(json, "sparse_attention_config");
  Json out = nested == nullptr ? Json::object() : *nested;
  if (!out.is_object()) refuse(ErrorCode::kCorrupt, "sparse_attention_config should be an object");
  for (const auto& [published, flat] : kNames)
    if (find(out, published) == nullptr && find(json, flat) != nullptr) out[published] = json[flat];
  return out;
}

/// Which layers choose blocks, of a config where some do.
std::vector<bool> sparse_layers(const Json& json, const Json& fields, uint32_t layers) {
  if (find(json, "layer_types") != nullptr)
    return listed_layers(json, "layer_types", layers, "minimax_m3_sparse", "full_attention");
  if (find(fields, "sparse_attention_freq") != nullptr)
    return listed_layers(fields, "sparse_attention_freq", layers, "sparse", "dense");
  return std::vector<bool>(layers, true);
}

/// Index heads of the first design also had values, which were added to what attention reads.
void check_index_values(const Json& fields, const Config& c) {
  const Json* given = find(fields, "sparse_disable_index_value");
  if (given == nullptr) return;
  std::vector<bool> is_off(c.layers, *given == true || *given == 1);
  if (given->is_array())
    is_off = listed_layers(fields, "sparse_disable_index_value", c.layers, "true", "false");
  for (uint32_t i = 0; i < c.layers; ++i)
    if (c.chooses_blocks[i] && !is_off[i])
      refuse(ErrorCode::kUnsupported,
             fmt::format("sparse_disable_index_value is false for layer {}: values of index heads "
                         "are not supported",
                         i));
}

void check_sparse(const SparseDims& s, uint32_t index_heads, const Config& c) {
  if (index_heads != c.kv_heads)
    refuse(ErrorCode::kUnsupported,
           fmt::format(
               "sparse_num_index_heads {} beside {} KV heads is not supported; one for each is",
               index_heads, c.kv_heads));
  if (s.last_blocks == 0)
    refuse(ErrorCode::kUnsupported,
           "sparse_local_block 0 is not supported: a token's own block is always read");
  const uint64_t taken = uint64_t{s.first_blocks} + s.last_blocks;
  if (s.dim < 2 * c.rope->inverse_frequencies.size() || s.dim > kMostBlocks ||
      s.block > kMostBlocks || s.top_k > kMostBlocks || taken > s.top_k)
    refuse(ErrorCode::kCorrupt,
           fmt::format("sparse_index_dim {}, sparse_block_size {}, sparse_topk_blocks {}, "
                       "sparse_init_block {} and sparse_local_block {} do not fit together",
                       s.dim, s.block, s.top_k, s.first_blocks, s.last_blocks));
}

/// 0 and more.
uint32_t blocks(const Json& fields, const char* key, uint32_t otherwise) {
  if (find(fields, key) == nullptr) return otherwise;
  return real(fields, key) == 0 ? 0 : count(fields, key);
}

void decode_sparse(const Json& json, Config& c) {
  const Json fields = sparse_fields(json);
  if (find(fields, "sparse_block_size") == nullptr || !flag(fields, "use_sparse_attention", true))
    return;
  require_text(fields, "sparse_score_type", "max");
  c.sparse = {.dim = count(fields, "sparse_index_dim"),
              .block = count(fields, "sparse_block_size"),
              .top_k = count(fields, "sparse_topk_blocks"),
              .first_blocks = blocks(fields, "sparse_init_block", 0),
              .last_blocks = blocks(fields, "sparse_local_block", 1)};
  check_sparse(c.sparse, count(fields, "sparse_num_index_heads"), c);
  c.chooses_blocks = sparse_layers(json, fields, c.layers);
  check_index_values(fields, c);
}

void decode_m3_experts(const Json& json, Config& c) {
  decode_local_experts(json, c);
  c.mlp = count(json, "dense_intermediate_size");
  if (find(json, "mlp_layer_types") != nullptr)
    c.has_experts = listed_layers(json, "mlp_layer_types", c.layers, "sparse", "dense");
  else if (find(json, "moe_layer_freq") != nullptr)
    c.has_experts = listed_layers(json, "moe_layer_freq", c.layers, "sparse", "dense");
  const double shared = real(json, "n_shared_experts", 1);
  if (shared != 0 && shared != 1)
    refuse(ErrorCode::kUnsupported,
           fmt::format("n_shared_experts {} is not supported; 0 and 1 are", shared));
  c.shared_mlp = shared == 0 ? 0 : count(json, "shared_intermediate_size");
  c.has_expert_bias = flag(json, "use_routing_bias", true);
  c.routing = {.score = tensor::ExpertScore::kSigmoid,
               .renormalizes = true,
               .scale = static_cast<float>(above_zero(json, "routed_scaling_factor"))};
}

Config decode_minimax_m3(const Json& given) {
  Json json = with_defaults(given, {{"max_position_embeddings", 1'048'576},
                                    {"rms_norm_eps", 1e-6},
                                    {"rope_theta", 5e6},
                                    {"partial_rotary_factor", 0.5},
                                    {"routed_scaling_factor", 2.0},
                                    {"dense_intermediate_size", 12'288},
                                    {"shared_intermediate_size", 3072}});
  require_text(json, "hidden_act", "swigluoai");
  require_text(json, "scoring_func", "sigmoid");
  require_text(json, "qk_norm_type", "per_head");
  require_number(json, "swiglu_alpha", 1.702);
  require_number(json, "swiglu_beta", 1);
  require_number(json, "swiglu_limit", 7);
  if (flag(json, "attention_output_gate", false))
    refuse(ErrorCode::kUnsupported, "attention_output_gate is not supported");
  Json base = with_rotary_dim(json);
  base.erase("layer_types");  // of other kinds than windows
  Config c = decode_base(base);
  c.gate = tensor::Gate::kClamped;
  c.has_qk_norm = flag(json, "use_qk_norm", true);
  c.norm_offset = flag(json, "use_gemma_norm", true) ? 1 : 0;
  decode_m3_experts(json, c);
  decode_sparse(json, c);
  return c;
}

}  // namespace

Arch minimax_m3_vl_text() {
  return decoder<MiniMaxM3Layer>("minimax_m3_vl_text", decode_as<decode_minimax_m3>);
}

}  // namespace tandem::model::arch
