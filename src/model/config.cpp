#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "format/model_sizes.h"
#include "model/config_fields.h"

namespace tandem::model {
namespace {

// A damaged file should not keep a rank busy or fill its memory.
constexpr uint32_t kMostExtraLayers = 64;
constexpr uint32_t kMostTaps = 64;
constexpr uint64_t kWidestShared = uint64_t{1} << 24;

/// mrope turns by three positions of an image's places, which are one and the same for text.
tensor::RopeSpec::Kind rope_kind(const std::string& name) {
  if (name == "default" || name == "mrope") return tensor::RopeSpec::Kind::kDefault;
  if (name == "linear") return tensor::RopeSpec::Kind::kLinear;
  if (name == "llama3") return tensor::RopeSpec::Kind::kLlama3;
  if (name == "yarn") return tensor::RopeSpec::Kind::kYarn;
  if (name == "proportional") return tensor::RopeSpec::Kind::kProportional;
  if (name == "factors" || name == "longrope" || name == "su")
    return tensor::RopeSpec::Kind::kFactors;
  refuse(ErrorCode::kUnsupported, fmt::format("rope_type {} is not supported; default, linear, "
                                              "llama3, yarn, longrope and proportional are",
                                              name));
}

/// One divisor for each rotated pair: GGUF files give them as factors, longrope as long_factor,
/// which is meant for prompts beyond the first context and taken for all, so that a cache stays
/// right.
std::vector<double> decode_factors(const Json& scaling, const char* key, uint32_t pairs) {
  const Json* values = find(scaling, key);
  if (values == nullptr || !values->is_array() || values->size() != pairs)
    refuse(ErrorCode::kCorrupt,
           fmt::format("rope_scaling should list {} numbers in {}, one for each "
                       "pair that is rotated",
                       pairs, key));
  std::vector<double> out;
  for (const Json& value : *values) {
    if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>()))
      refuse(ErrorCode::kCorrupt,
             fmt::format("a rope factor should be a number above 0, is {}", value.dump()));
    out.push_back(value.get<double>());
  }
  return out;
}

/// What longrope multiplies rotated values by: grows with how far the context was stretched.
double long_magnitude(const Json& json, const Json& scaling, const Config& config) {
  const double original = above_zero(scaling, "original_max_position_embeddings",
                                     above_zero(json, "original_max_position_embeddings", 4096));
  if (original <= 1)
    refuse(ErrorCode::kCorrupt,
           fmt::format("original_max_position_embeddings should be above 1, is {}", original));
  const double stretch = config.max_positions / original;
  return stretch <= 1 ? 1 : std::sqrt(1 + std::log(stretch) / std::log(original));
}

/// rope_theta and rope_scaling, or rope_parameters that hold both (newer checkpoints).
tensor::RopeSpec decode_rope_spec(const Json& json, const Config& config, uint32_t head_dim) {
  const Json* parameters = find(json, "rope_parameters");
  const Json* scaling = parameters != nullptr ? parameters : find(json, "rope_scaling");
  const Json none = Json::object();
  const Json& s = scaling != nullptr ? *scaling : none;
  if (!s.is_object()) refuse(ErrorCode::kCorrupt, "rope_scaling should be an object");
  const double base = above_zero(json, "rope_theta", 10000.0);
  const double partial = real(s, "partial_rotary_factor", real(json, "partial_rotary_factor", 1.0));
  const double rotated = partial * head_dim;
  if (partial <= 0 || partial > 1 || rotated < 2)
    refuse(ErrorCode::kCorrupt,
           fmt::format("partial_rotary_factor should be above 0 and at most 1, and leave at least "
                       "2 of head_dim {}, is {}: correct config.json",
                       head_dim, partial));
  tensor::RopeSpec spec;
  spec.kind = rope_kind(text(s, "rope_type", text(s, "type", "default").c_str()));
  spec.dims = static_cast<uint32_t>(rotated) / 2 * 2;
  spec.base = above_zero(s, "rope_theta", base);
  spec.interleaved = flag(json, "rope_traditional", false);
  if (spec.kind == tensor::RopeSpec::Kind::kDefault) return spec;
  if (spec.kind == tensor::RopeSpec::Kind::kFactors) {
    const bool is_long = find(s, "factors") == nullptr && find(s, "long_factor") != nullptr;
    spec.factors = decode_factors(s, is_long ? "long_factor" : "factors", spec.dims / 2);
    if (is_long) spec.attention_factor = long_magnitude(json, s, config);
    return spec;
  }
  if (spec.kind == tensor::RopeSpec::Kind::kProportional) {
    spec.turning_dims = std::exchange(spec.dims, head_dim);
    spec.factor = above_zero(s, "factor", 1);
    return spec;
  }
  spec.factor = real(s, "factor");
  spec.original_context =
      real(s, "original_max_position_embeddings",
           real(json, "original_max_position_embeddings", config.max_positions));
  spec.low_freq_factor = real(s, "low_freq_factor", 1.0);
  spec.high_freq_factor = real(s, "high_freq_factor", 4.0);
  spec.beta_fast = real(s, "beta_fast", 32.0);
  spec.beta_slow = real(s, "beta_slow", 1.0);
  spec.truncates = flag(s, "truncate", true);
  spec.mscale = real(s, "mscale", 1.0);
  spec.mscale_all_dim = real(s, "mscale_all_dim", 0.0);
  spec.attention_factor = real(s, "attention_factor", 0.0);
  if (spec.factor <= 0 || spec.original_context <= 0 || spec.base <= 1)
    refuse(ErrorCode::kCorrupt, "rope_scaling has a factor, context or theta out of range");
  return spec;
}

/// Explicit layer_types decide. Without them mistral's window, when it has one, holds for every
/// layer, and qwen's for the layers from max_window_layers on, when switched on.
std::vector<uint32_t> decode_windows(const Json& json, const Config& config) {
  std::vector<uint32_t> out(config.layers, 0);
  if (const Json* types = find(json, "layer_types")) {
    if (!types->is_array() || types->size() != config.layers)
      refuse(ErrorCode::kCorrupt, "layer_types should have one entry for each layer");
    for (uint32_t i = 0; i < config.layers; ++i) {
      if ((*types)[i] == "sliding_attention")
        out[i] = count(json, "sliding_window");
      else if ((*types)[i] != "full_attention")
        refuse(ErrorCode::kUnsupported,
               fmt::format("layer type {} is not supported", (*types)[i].dump()));
    }
  } else if (config.model_type == "mistral" && find(json, "sliding_window") != nullptr) {
    out.assign(config.layers, count(json, "sliding_window"));
  } else if (flag(json, "use_sliding_window", false)) {
    const uint32_t first = find(json, "max_window_layers") == nullptr ? 0
                           : real(json, "max_window_layers") < 1 ? 0
                                                                 : count(json, "max_window_layers");
    for (uint32_t i = first; i < config.layers; ++i) out[i] = count(json, "sliding_window");
  }
  return out;
}

/// Layers after the others that predict further tokens.
uint32_t decode_extra_layers(const Json& json) {
  if (real(json, "num_nextn_predict_layers", 0) == 0) return 0;
  const uint32_t layers = count(json, "num_nextn_predict_layers");
  if (layers > kMostExtraLayers)
    refuse(ErrorCode::kCorrupt, fmt::format("num_nextn_predict_layers should be at most {}, is {}",
                                            kMostExtraLayers, layers));
  return layers;
}

/// Whatever a config says of its rope, what it makes must be numbers.
void check_finite(const tensor::Rope& rope) {
  const bool is_finite =
      std::isfinite(rope.scale) &&
      std::ranges::all_of(rope.inverse_frequencies, [](float each) { return std::isfinite(each); });
  if (!is_finite)
    refuse(ErrorCode::kCorrupt,
           "rope_scaling makes angles that are no finite numbers: correct config.json");
}

void check(const topology::HeadShape& s) {
  if (s.heads % s.kv_heads != 0)
    refuse(ErrorCode::kCorrupt,
           fmt::format("{} attention heads do not share {} KV heads evenly", s.heads, s.kv_heads));
  if (s.head_dim % 2 != 0)
    refuse(ErrorCode::kCorrupt, fmt::format("head_dim should be even, is {}", s.head_dim));
}

}  // namespace

Config decode_base(const Json& json) {
  Config c;
  c.model_type = text(json, "model_type", "");
  const auto sizes = format::read_sizes(json);
  if (!sizes) throw Refusal{sizes.error()};
  c.hidden = sizes->hidden;
  c.layers = sizes->layers;
  c.heads = sizes->heads;
  c.kv_heads = sizes->kv_heads;
  c.head_dim = sizes->head_dim;
  c.value_dim = sizes->value_dim;
  c.window_heads = {.heads = sizes->window.heads,
                    .kv_heads = sizes->window.kv_heads,
                    .head_dim = sizes->window.head_dim,
                    .value_dim = sizes->window.value_dim};
  c.kv_sources = sizes->kv_sources;
  c.joined_layers = sizes->joined_layers();
  c.mlp = sizes->mlp;
  c.vocab = sizes->vocab;
  c.max_positions = sizes->max_positions;
  c.rms_eps = above_zero(json, "rms_norm_eps");
  c.has_tied_head = flag(json, "tie_word_embeddings", false);
  c.extra_layers = decode_extra_layers(json);
  check({.heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim});
  if (c.window_heads.heads != 0) check(c.window_heads);
  c.rope = decode_rope(json, c, c.head_dim);
  c.windows = decode_windows(json, c);
  return c;
}

std::shared_ptr<const tensor::Rope> decode_rope(const Json& json,
                                                const Config& config,
                                                uint32_t head_dim) {
  auto rope = std::make_shared<const tensor::Rope>(
      tensor::make_rope(decode_rope_spec(json, config, head_dim)));
  check_finite(*rope);
  return rope;
}

std::shared_ptr<const tensor::Rope> plain_rope(uint32_t dims, double base) {
  return std::make_shared<const tensor::Rope>(tensor::make_rope({.dims = dims, .base = base}));
}

Config decode_silu(const Json& json) {
  const std::string activation = text(json, "hidden_act", "silu");
  if (activation != "silu" && activation != "swish")
    refuse(ErrorCode::kUnsupported,
           fmt::format("hidden_act {} is not supported; silu is", activation));
  return decode_base(json);
}

namespace {

/// Every decoder_sparse_step-th layer has experts, but for those that mlp_only_layers lists.
std::vector<bool> decode_sparse_layers(const Json& json, uint32_t layers) {
  const uint32_t step = find(json, "decoder_sparse_step") ? count(json, "decoder_sparse_step") : 1;
  std::vector<bool> out(layers);
  for (uint32_t i = 0; i < layers; ++i) out[i] = (i + 1) % step == 0;
  if (find(json, "mlp_only_layers") != nullptr) clear_listed(json, "mlp_only_layers", out);
  return out;
}

}  // namespace

void check_experts_of_token(const Config& c) {
  if (c.experts_of_token > c.experts)
    refuse(ErrorCode::kCorrupt,
           fmt::format("num_experts_per_tok is {} of {} experts", c.experts_of_token, c.experts));
}

void decode_local_experts(const Json& json, Config& c) {
  c.experts = count(json, "num_local_experts");
  c.experts_of_token = count(json, "num_experts_per_tok");
  c.expert_mlp = c.mlp;
  c.has_experts.assign(c.layers, true);
  check_experts_of_token(c);
}

void decode_window_pattern(const Json& json, Config& c) {
  const uint32_t pattern = count(json, "sliding_window_pattern");
  for (uint32_t i = 0; i < c.layers; ++i)
    c.windows[i] = (i + 1) % pattern == 0 ? 0 : count(json, "sliding_window");
}

std::vector<bool> decode_state_layers(const Json& json, const char* with_state, uint32_t layers) {
  const Json& types = json.at("layer_types");
  if (!types.is_array() || types.size() != layers)
    refuse(ErrorCode::kCorrupt, "layer_types should have one entry for each layer");
  std::vector<bool> out(layers);
  for (uint32_t i = 0; i < layers; ++i) {
    out[i] = types[i] == with_state;
    if (!out[i] && types[i] != "full_attention")
      refuse(ErrorCode::kUnsupported,
             fmt::format("layer type {} is not supported; {} and full_attention are",
                         types[i].dump(), with_state));
  }
  return out;
}

void check_state(const tensor::DeltaShape& s, const char* heads, const char* dim) {
  constexpr uint64_t kWidest = uint64_t{1} << 24;
  const uint64_t keys = uint64_t{s.key_heads} * s.key_dim;
  const uint64_t values = uint64_t{s.value_heads} * s.value_dim;
  if (std::max(keys, values) <= kWidest && values * s.key_dim <= UINT32_MAX / 2) return;
  refuse(ErrorCode::kCorrupt,
         fmt::format("heads of linear attention are too many or too wide: {} is {}, {} {}", heads,
                     s.value_heads, dim, s.value_dim));
}

uint32_t decode_taps(const Json& json, const char* key) {
  const uint32_t taps = count(json, key);
  if (taps < 2 || taps > kMostTaps)
    refuse(ErrorCode::kCorrupt,
           fmt::format("{} should be from 2 to {}, is {}", key, kMostTaps, taps));
  return taps;
}

Config decode_with_experts(const Json& json) {
  Config c = decode_silu(json);
  c.experts = count(json, "num_experts");
  c.experts_of_token = count(json, "num_experts_per_tok");
  c.expert_mlp = count(json, "moe_intermediate_size");
  c.routing.renormalizes = flag(json, "norm_topk_prob", false);
  c.has_experts = decode_sparse_layers(json, c.layers);
  check_experts_of_token(c);
  return c;
}

/// The width of all shared experts together.
static uint32_t decode_shared_experts(const Json& json, uint32_t width) {
  if (find(json, "n_shared_experts") == nullptr) return 0;
  const uint64_t all = uint64_t{width} * count(json, "n_shared_experts");
  if (all > kWidestShared)
    refuse(ErrorCode::kCorrupt,
           fmt::format("n_shared_experts of moe_intermediate_size {} make {} columns, more than {}",
                       width, all, kWidestShared));
  return static_cast<uint32_t>(all);
}

void decode_routed_experts(const Json& json, Config& c) {
  c.experts = count(json, "n_routed_experts");
  c.experts_of_token = count(json, "num_experts_per_tok");
  c.expert_mlp = count(json, "moe_intermediate_size");
  c.shared_mlp = decode_shared_experts(json, c.expert_mlp);
  const double dense = real(json, "first_k_dense_replace", 0);
  const uint32_t every =
      find(json, "moe_layer_freq") == nullptr ? 1 : count(json, "moe_layer_freq");
  for (uint32_t i = 0; i < c.layers; ++i) c.has_experts.push_back(i >= dense && i % every == 0);
  c.routing = {.scale = static_cast<float>(above_zero(json, "routed_scaling_factor", 1)),
               .groups = find(json, "n_group") == nullptr ? 1 : count(json, "n_group"),
               .top_groups = find(json, "topk_group") == nullptr ? 1 : count(json, "topk_group")};
  check_experts_of_token(c);
  if (c.experts % c.routing.groups != 0 || c.routing.top_groups > c.routing.groups ||
      (c.routing.groups > 1 && c.experts / c.routing.groups < 2))
    refuse(ErrorCode::kCorrupt, fmt::format("{} experts do not lie in {} groups of which {} count",
                                            c.experts, c.routing.groups, c.routing.top_groups));
}

void decode_biased_routing(const Json& json, Config& c) {
  require_text(json, "topk_method", "noaux_tc");
  require_text(json, "scoring_func", "sigmoid");
  decode_routed_experts(json, c);
  c.routing.score = tensor::ExpertScore::kSigmoid;
  c.routing.renormalizes = c.experts_of_token > 1 && flag(json, "norm_topk_prob", true);
}

tensor::QueryScale decode_query_scale(const Json& json) {
  const Json* rope = find(json, "rope_parameters");
  if (rope == nullptr || !rope->is_object())
    refuse(ErrorCode::kCorrupt, "rope_parameters should be an object");
  return {.beta = static_cast<float>(real(*rope, "llama_4_scaling_beta")),
          .context = count(*rope, "original_max_position_embeddings")};
}

Result<Config> decode_llama_config(const Json& json) { return decoded(decode_silu, json); }

Result<Config> decode_qwen3_moe_config(const Json& json) {
  return decoded(decode_with_experts, json);
}

}  // namespace tandem::model
