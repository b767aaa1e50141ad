// Step 3.5: layers that see a window have heads, a base and a partial rope of their own; a gate for
// each head; norms of weights that lie around 0 in the first checkpoints; experts by a biased
// sigmoid, a shared one, and limits inside of MLPs by layer.
#include <algorithm>
#include <charconv>
#include <variant>

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/experts.h"
#include "model/blocks/mlp.h"
#include "model/config_fields.h"

namespace tandem::model::arch {
namespace {

struct Step3p5Layer {
  tensor::RmsNorm input_norm;
  Attention attention;
  tensor::RmsNorm post_norm;
  std::variant<SwiGlu, ExpertMlp> mlp;

  Step3p5Layer(const Config& c, const Weights& w, uint32_t index)
      : input_norm(w / "input_layernorm", c.rms_eps, c.norm_offset),
        attention(w / "self_attn",
                  c,
                  AttentionOptions{.qk_norm = c.rms_eps,
                                   .head_gate = c.has_head_gates ? "g_proj" : nullptr}
                      .of_layer(c, index)),
        post_norm(w / "post_attention_layernorm", c.rms_eps, c.norm_offset),
        mlp(make_mlp(c, w, index)) {}

  /// The first checkpoints have the parts of the block beside each other in the layer.
  static std::variant<SwiGlu, ExpertMlp> make_mlp(const Config& c,
                                                  const Weights& w,
                                                  uint32_t index) {
    const Weights block = w / "mlp";
    if (!c.has_experts[index])
      return SwiGlu(block, c, c.mlp, w.part().mlp, {}, c.mlp_limits[index]);
    const bool is_apart = (w / "moe").has("router_bias");
    return ExpertMlp(is_apart ? w : block, c,
                     {.router = is_apart ? "moe.gate" : "gate.gate",
                      .bias = is_apart ? "moe.router_bias" : "gate.router_bias",
                      .shared = "share_expert",
                      .limit = c.expert_limits[index],
                      .shared_limit = c.mlp_limits[index]});
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const auto [h, normed] = post_norm.of_sum(x, attention(input_norm(x), kv, step));
    return h + std::visit([&x = normed](const auto& each) { return each(x); }, mlp);
  }
};

/// Only the layers that are served; lists may go on with those that predict further tokens.
Json listed(const Json& json, const char* key, size_t layers) {
  const Json* list = find(json, key);
  if (list == nullptr) return nullptr;
  if (!list->is_array() || list->size() < layers)
    refuse(ErrorCode::kCorrupt, fmt::format("{} should list something for each layer", key));
  return Json(list->begin(), list->begin() + static_cast<std::ptrdiff_t>(layers));
}

bool is_window(const Json& type) { return type == "sliding_attention"; }

/// The number that all layers of a kind have in common.
double of_kind(
    const Json& list, const Json& types, bool windows, const char* key, double otherwise) {
  std::optional<double> found;
  for (size_t i = 0; i < types.size() && !list.is_null(); ++i) {
    if (is_window(types[i]) != windows) continue;
    if (!list[i].is_number())
      refuse(ErrorCode::kCorrupt, fmt::format("{} should list numbers", key));
    if (found && *found != list[i].get<double>())
      refuse(ErrorCode::kUnsupported,
             fmt::format("{} differs between layers of one kind, which is not supported", key));
    found = list[i].get<double>();
  }
  return found.value_or(otherwise);
}

/// The config as if all layers had the rope of one kind.
Json with_rope_of_kind(const Json& json, const Json& types, bool windows) {
  Json out = json;
  const Json* theta = find(json, "rope_theta");
  if (theta != nullptr && theta->is_array())
    out["rope_theta"] =
        of_kind(listed(json, "rope_theta", types.size()), types, windows, "rope_theta", 10'000);
  out["partial_rotary_factor"] = of_kind(listed(json, "partial_rotary_factors", types.size()),
                                         types, windows, "partial_rotary_factors", 1);
  const Json* only = find(json, "yarn_only_types");
  const char* kind = windows ? "sliding_attention" : "full_attention";
  const bool is_left_out = only != nullptr && only->is_array() && !only->empty() &&
                           std::ranges::find(*only, Json(kind)) == only->end();
  if (is_left_out) out["rope_scaling"] = nullptr;
  return out;
}

/// Limits of each layer; 0 and what is missing: none.
std::vector<float> decode_limits(const Json& json, const char* key, uint32_t layers) {
  std::vector<float> out(layers, 0);
  const Json* list = find(json, key);
  if (list == nullptr) return out;
  if (!list->is_array()) refuse(ErrorCode::kCorrupt, fmt::format("{} should be a list", key));
  for (uint32_t i = 0; i < std::min<size_t>(layers, list->size()); ++i) {
    const Json& limit = (*list)[i];
    if (!limit.is_null() && !limit.is_number())
      refuse(ErrorCode::kCorrupt, fmt::format("{} lists {}", key, limit.dump()));
    if (limit.is_number()) out[i] = std::max(0.0F, limit.get<float>());
  }
  return out;
}

/// "3,4,5", or all but the first.
std::vector<bool> decode_step3p5_experts(const Json& json, uint32_t layers) {
  std::vector<bool> out(layers, true);
  out[0] = false;
  const std::string listed = text(json, "moe_layers_enum", "");
  if (listed.empty()) return out;
  out.assign(layers, false);
  const char* end = listed.data() + listed.size();
  for (const char* at = listed.data(); at < end;) {
    uint32_t layer = 0;
    const auto number = std::from_chars(at, end, layer);
    if (number.ec != std::errc() || (number.ptr != end && *number.ptr != ','))
      refuse(ErrorCode::kCorrupt, fmt::format("moe_layers_enum is {}: not numbers", listed));
    if (layer < layers) out[layer] = true;
    at = number.ptr == end ? end : number.ptr + 1;
  }
  return out;
}

Config decode_step3p5(const Json& given) {
  Json json = with_defaults(given, {{"rms_norm_eps", 1e-5},
                                    {"max_position_embeddings", 262'144},
                                    {"sliding_window", 512},
                                    {"moe_num_experts", 288},
                                    {"moe_top_k", 8},
                                    {"moe_intermediate_size", 1280},
                                    {"share_expert_dim", 1280},
                                    {"moe_router_scaling_factor", 3.0}});
  const uint32_t layers = count(json, "num_hidden_layers");
  json["layer_types"] = listed(json, "layer_types", layers);
  if (json["layer_types"].is_null()) refuse(ErrorCode::kCorrupt, "layer_types is missing");
  const Json types = json["layer_types"];
  const std::string router = text(json, "moe_router_activation", "sigmoid");
  if (router != "sigmoid")
    refuse(ErrorCode::kUnsupported,
           fmt::format("moe_router_activation {} is not supported; sigmoid is", router));
  Config c = decode_silu(with_rope_of_kind(json, types, false));
  const uint32_t head_dim = c.window_heads.heads == 0 ? c.head_dim : c.window_heads.head_dim;
  c.window_rope = decode_rope(with_rope_of_kind(json, types, true), c, head_dim);
  c.has_head_gates = flag(json, "use_head_wise_attn_gate", true);
  c.experts = count(json, "moe_num_experts");
  c.experts_of_token = count(json, "moe_top_k");
  c.expert_mlp = count(json, "moe_intermediate_size");
  c.shared_mlp = count(json, "share_expert_dim");
  c.has_experts = decode_step3p5_experts(json, layers);
  c.expert_limits = decode_limits(json, "swiglu_limits", layers);
  c.mlp_limits = decode_limits(json, "swiglu_limits_shared", layers);
  c.routing = {.score = tensor::ExpertScore::kSigmoid,
               .renormalizes = flag(json, "norm_expert_weight", true),
               .scale = static_cast<float>(above_zero(json, "moe_router_scaling_factor"))};
  check_experts_of_token(c);
  return c;
}

/// As published, its norms' weights lie around 0; mlx-lm adds 1 where it also renames.
void settle_step3p5(const format::Checkpoint& checkpoint, Config& c) {
  const auto is_published = [](const std::string& name) {
    return name.find(".moe.") != std::string::npos ||
           (name.find(".share_expert.") != std::string::npos &&
            name.find(".mlp.share_expert.") == std::string::npos);
  };
  const auto names = checkpoint.names();
  c.norm_offset = std::ranges::any_of(names, is_published) ? 1 : 0;
}

}  // namespace

Arch step3p5() {
  Arch out = decoder<Step3p5Layer>("step3p5", decode_as<decode_step3p5>);
  out.settle = settle_step3p5;
  return out;
}

}  // namespace tandem::model::arch
