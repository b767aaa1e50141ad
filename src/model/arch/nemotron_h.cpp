// Nemotron-H, Nemotron 2 Nano and Nemotron 3: Mamba 2, some attention without a rope, and MLPs or
// experts that square what is above 0; one of them a layer.
#include "model/arch/ssd_layer.h"

namespace tandem::model::arch {
namespace {

/// M: Mamba 2, *: attention, -: an MLP, E: experts.
char kind_of_type(const std::string& type) {
  if (type == "mamba" || type == "linear_attention" || type == "conv") return 'M';
  if (type == "attention" || type == "full_attention") return '*';
  if (type == "mlp") return '-';
  if (type == "moe") return 'E';
  return '?';
}

/// A letter for each layer, of a string of them or of a list of letters or types.
std::string decode_kinds(const Json& json, uint32_t layers) {
  const Json* listed = nullptr;
  for (const char* key : {"layer_types", "layers_block_type", "hybrid_override_pattern"})
    if (find(json, key) != nullptr) listed = find(json, key);
  if (listed == nullptr)
    refuse(ErrorCode::kCorrupt,
           "hybrid_override_pattern is missing, and layers_block_type too: one should be there");
  std::string kinds;
  if (listed->is_string()) kinds = listed->get<std::string>();
  if (listed->is_array())
    for (const Json& each : *listed) {
      const std::string type = each.is_string() ? each.get<std::string>() : "?";
      kinds += type.size() == 1 ? type[0] : kind_of_type(type);
    }
  if (const size_t at = kinds.find_first_not_of("M*-E"); at != std::string::npos)
    refuse(ErrorCode::kUnsupported,
           fmt::format("layer {} of {} is of no supported type; M (mamba), * (attention), - (mlp) "
                       "and E (moe) are",
                       at, listed->dump()));
  if (kinds.size() != layers)
    refuse(ErrorCode::kCorrupt, fmt::format("num_hidden_layers is {}, but {} are listed: {}",
                                            layers, kinds.size(), listed->dump()));
  return kinds;
}

void decode_nemotron_experts(const Json& json, Config& c) {
  const bool has_shared = find(json, "n_shared_experts") != nullptr;
  Json routed = json;  // the shared expert has a width of its own
  routed.erase("n_shared_experts");
  std::vector<bool> has_experts = std::move(c.has_experts);
  decode_biased_routing(routed, c);
  c.has_experts = std::move(has_experts);
  if (has_shared)
    c.shared_mlp = find(json, "moe_shared_expert_intermediate_size") != nullptr
                       ? count(json, "moe_shared_expert_intermediate_size")
                       : c.mlp;
  if (find(json, "moe_latent_size") != nullptr) c.expert_latent = count(json, "moe_latent_size");
  if (flag(json, "mlp_bias", false))
    refuse(ErrorCode::kUnsupported, "mlp_bias is not supported beside experts");
}

/// The fields that have another name, and without those that other families read.
Json as_usual_hybrid(const Json& json) {
  Json out = json;
  for (const char* unused : {"layer_types", "sliding_window", "rope_scaling", "rope_parameters",
                             "partial_rotary_factor", "hidden_act"})
    out.erase(unused);
  out["rms_norm_eps"] = above_zero(json, "layer_norm_epsilon", real(json, "norm_eps", 1e-5));
  return out;
}

Config decode_nemotron_h(const Json& json) {
  require_text(json, "mamba_hidden_act", "silu");
  require_text(json, "mlp_hidden_act", "relu2");
  Config c = decode_base(as_usual_hybrid(json));
  decode_ssd(json,
             {.heads = "mamba_num_heads", .head_dim = "mamba_head_dim", .state = "ssm_state_size"},
             c);
  c.gate = tensor::Gate::kRelu;
  c.has_mlp_gates = false;
  const std::string kinds = decode_kinds(json, c.layers);
  for (const char kind : kinds) {
    c.is_recurrent.push_back(kind == 'M');
    c.is_mlp.push_back(kind == '-' || kind == 'E');
    c.has_experts.push_back(kind == 'E');
  }
  if (kinds.find('E') != std::string::npos) decode_nemotron_experts(json, c);
  return c;
}

}  // namespace

Arch nemotron_h() { return decoder<SsdLayer>("nemotron_h", decode_as<decode_nemotron_h>); }

}  // namespace tandem::model::arch
