// Gemma 4 without its towers: layers that see everything have wider heads than those that see a
// window; values are normalised; experts may stand beside the MLP; the last layers may read the
// keys and values of earlier ones, and layers may be told of the tokens.
#include <cmath>

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/mlp.h"
#include "model/config_fields.h"
#include "tensor/activation.h"
#include "tensor/experts.h"
#include "tensor/gather.h"

namespace tandem::model::arch {
namespace {

/// What a layer adds of its own input: norm(project(gelu(gate(x)) * input)).
struct Gemma4Told {
  tensor::Context context;
  tensor::ColumnLinear gate, projection;
  tensor::RmsNorm norm;

  Gemma4Told(const Config& c, const Weights& w)
      : context(w.context()),
        gate(w / "per_layer_input_gate", c.hidden, {0, c.layer_inputs}),
        projection(w / "per_layer_projection", c.layer_inputs, {0, c.hidden}),
        norm(w / "post_per_layer_input_norm", c.rms_eps) {}

  array operator()(const array& x, const array& input) const {
    return norm(projection(tensor::gated(context, tensor::Gate::kGeluTanh, gate(x), input)));
  }
};

/// The normalised weights of a router's own RMS norm, which also shrinks what it gives.
std::vector<float> router_weights(const Config& c, const Weights& w) {
  std::vector<float> out = w.vector("scale");
  for (float& each : out) each /= std::sqrt(static_cast<float>(c.hidden));
  return out;
}

/// Experts beside the MLP: both take what the attention has left, each with norms of its own.
struct Gemma4Experts {
  tensor::Context context;
  uint32_t hidden;
  tensor::RmsNorm before, after, after_mlp, before_router;
  std::optional<tensor::ColumnLinear> router;  // absent on a rank without columns
  std::optional<tensor::Experts> experts;

  Gemma4Experts(const Config& c, const Weights& w)
      : context(w.context()),
        hidden(c.hidden),
        before(w / "pre_feedforward_layernorm_2", c.rms_eps),
        after(w / "post_feedforward_layernorm_2", c.rms_eps),
        after_mlp(w / "post_feedforward_layernorm_1", c.rms_eps),
        before_router(context, router_weights(c, w / "router"), c.rms_eps) {
    const topology::Range columns = w.part().expert_mlp;
    if (columns.empty()) {
      (w / "router").skip();
      (w / "experts").skip();
      return;
    }
    router.emplace(w / "router" / "proj", c.hidden, topology::Range{0, c.experts});
    experts.emplace(w,
                    tensor::ExpertsShape{.hidden = c.hidden,
                                         .width = c.expert_mlp,
                                         .experts = c.experts,
                                         .top_k = c.experts_of_token,
                                         .gate = c.gate,
                                         .routing = c.routing},
                    columns,
                    tensor::PerExpert{.scales = (w / "router").vector("per_expert_scale")});
  }

  /// x [tokens, hidden], and what the MLP made of it → their sum.
  array operator()(const array& x, const array& of_mlp) const {
    const array part = experts ? (*experts)(before(x), (*router)(before_router(x)))
                               : tensor::zeros_after(context, x, hidden);
    return after_mlp(of_mlp) + after(tensor::all_sum(context, part));
  }
};

/// An RMS norm before and after each of attention and MLP, then what the layer is told; all of it
/// times a number of the layer's.
struct Gemma4Layer {
  tensor::Context context;
  tensor::RmsNorm input_norm, after_attention, before_mlp, after_mlp;
  Attention attention;
  SwiGlu mlp;
  std::optional<Gemma4Experts> experts;
  std::optional<Gemma4Told> told;
  float scale;

  Gemma4Layer(const Config& c, const Weights& w, uint32_t index)
      : context(w.context()),
        input_norm(w / "input_layernorm", c.rms_eps),
        after_attention(w / "post_attention_layernorm", c.rms_eps),
        before_mlp(w / "pre_feedforward_layernorm", c.rms_eps),
        after_mlp(w / "post_feedforward_layernorm", c.rms_eps),
        attention(w / "self_attn",
                  c,
                  AttentionOptions{.qk_norm = c.rms_eps, .norms_values = true}.of_layer(c, index)),
        mlp(make_mlp(c, w / "mlp", index)),
        scale(w.vector("layer_scalar").at(0)) {
    if (c.experts != 0) experts.emplace(c, w);
    if (c.layer_inputs != 0) told.emplace(c, w);
  }

  static SwiGlu make_mlp(const Config& c, const Weights& w, uint32_t index) {
    if (c.wide_mlps_from == 0 || index < c.wide_mlps_from) return {w, c};
    const topology::Range columns = w.part().mlp;
    return {w, c, 2 * c.mlp, {2 * columns.begin, 2 * columns.end}};
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step, const array* input) const {
    const array attended = after_attention(attention(input_norm(x), kv, step));
    const auto [h, normed] = before_mlp.of_sum(x, attended);
    const array of_mlp = mlp(normed);
    array out = h + after_mlp(experts ? (*experts)(h, of_mlp) : of_mlp);
    if (told) out = out + (*told)(out, *input);
    return scale == 1 ? out : tensor::scaled(context, out, scale);
  }
};

/// rope_parameters of one kind of layer as if all had it; a kind without has a plain rope.
Json with_rope_of(const Json& json, const char* kind) {
  Json out = json;
  const Json* ropes = find(json, "rope_parameters");
  if (ropes != nullptr && !ropes->is_object())
    refuse(ErrorCode::kCorrupt, "rope_parameters should be an object");
  const Json* own = ropes == nullptr ? nullptr : find(*ropes, kind);
  out["rope_parameters"] = own == nullptr ? Json::object() : *own;
  return out;
}

Json usual_gemma4_ropes() {
  return {{"full_attention",
           {{"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}, {"rope_type", "proportional"}}},
          {"sliding_attention", {{"rope_theta", 1e4}, {"rope_type", "default"}}}};
}

/// Which layers have wider MLPs: those without keys and values of their own.
uint32_t decode_wide_mlps(const Json& json, const Config& c) {
  if (c.kv_sources.empty() || !flag(json, "use_double_wide_mlp", true)) return 0;
  return c.layers - count(json, "num_kv_shared_layers");
}

uint32_t decode_layer_inputs(const Json& json, uint32_t vocab) {
  if (!json.contains("hidden_size_per_layer_input"))
    refuse(ErrorCode::kCorrupt, "hidden_size_per_layer_input is missing");
  if (real(json, "hidden_size_per_layer_input", 0) == 0) return 0;
  const uint32_t known = count(json, "vocab_size_per_layer_input");
  if (known != vocab)
    refuse(ErrorCode::kUnsupported,
           fmt::format("vocab_size_per_layer_input is {}, and vocab_size {}: they differ", known,
                       vocab));
  return count(json, "hidden_size_per_layer_input");
}

void refuse_unknown_parts(const Json& json) {
  const std::string activation = text(json, "hidden_activation", "gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh")
    refuse(ErrorCode::kUnsupported,
           fmt::format("hidden_activation {} is not supported; gelu_pytorch_tanh is", activation));
  const Json* both_ways = find(json, "use_bidirectional_attention");
  if (both_ways != nullptr && *both_ways != "vision")
    refuse(ErrorCode::kUnsupported,
           fmt::format("use_bidirectional_attention {} is not supported; vision is, whose tower is "
                       "left out",
                       both_ways->dump()));
}

/// Every layer has them, or none.
void decode_gemma4_experts(const Json& json, Config& c) {
  if (!flag(json, "enable_moe_block", false)) return;
  c.experts = count(json, "num_experts");
  c.experts_of_token = count(json, "top_k_experts");
  c.expert_mlp = count(json, "moe_intermediate_size");
  c.routing.renormalizes = true;  // of equal effect: a softmax over those chosen
  c.has_experts.assign(c.layers, true);
  if (c.experts_of_token > c.experts)
    refuse(ErrorCode::kCorrupt,
           fmt::format("top_k_experts is {} of {} experts", c.experts_of_token, c.experts));
}

Config decode_gemma4(const Json& given) {
  const bool has_no_cap =
      given.contains("final_logit_softcapping") && given["final_logit_softcapping"].is_null();
  const Json json = with_defaults(given, {{"rms_norm_eps", 1e-6},
                                          {"vocab_size", 262'144},
                                          {"vocab_size_per_layer_input", 262'144},
                                          {"max_position_embeddings", 131'072},
                                          {"sliding_window", 512},
                                          {"sliding_window_pattern", 5},
                                          {"final_logit_softcapping", 30},
                                          {"tie_word_embeddings", true},
                                          {"rope_parameters", usual_gemma4_ropes()}});
  refuse_unknown_parts(json);
  Config c = decode_base(with_rope_of(json, "full_attention"));
  c.window_rope = decode_rope(with_rope_of(json, "sliding_attention"), c, c.window_heads.head_dim);
  c.gate = tensor::Gate::kGeluTanh;
  c.embed_scale = std::sqrt(static_cast<double>(c.hidden));
  c.attention_scale = 1;
  c.logit_softcap = has_no_cap ? 0 : above_zero(json, "final_logit_softcapping");
  c.has_equal_kv = flag(json, "attention_k_eq_v", false);
  decode_gemma4_experts(json, c);
  c.wide_mlps_from = decode_wide_mlps(json, c);
  c.layer_inputs = decode_layer_inputs(json, c.vocab);
  if (find(json, "layer_types") == nullptr) decode_window_pattern(json, c);
  return c;
}

}  // namespace

Arch gemma4_text() { return decoder<Gemma4Layer>("gemma4_text", decode_as<decode_gemma4>); }

}  // namespace tandem::model::arch
