// Fields of families with latent attention.
#include <algorithm>
#include <cmath>

#include "model/config_fields.h"

namespace tandem::model {
namespace {

constexpr uint64_t kWidestHeads = uint64_t{1} << 24;  // all heads of a layer together
constexpr uint32_t kMostChosen = 1U << 20;

/// The same config for one key head of which every dimension is rotated.
Json with_rope_head(const Json& json) {
  Json out = json;
  out["head_dim"] = count(json, "qk_rope_head_dim");
  out["num_key_value_heads"] = 1;
  out["rope_traditional"] = flag(json, "rope_interleave", true);
  out.erase("partial_rotary_factor");  // of whole heads, where a config has it
  for (const char* rope : {"rope_parameters", "rope_scaling"})
    if (find(out, rope) != nullptr && out[rope].is_object())
      out[rope].erase("partial_rotary_factor");
  return out;
}

/// 1 / sqrt(width) times yarn's magnitude, which scores carry in place of queries and keys.
double scale_of(const Json& json, uint32_t width) {
  const Json* parameters = find(json, "rope_parameters");
  const Json* rope = parameters != nullptr ? parameters : find(json, "rope_scaling");
  const double plain = 1 / std::sqrt(width);
  if (rope == nullptr) return plain;
  const double all = real(*rope, "mscale_all_dim", 0), factor = real(*rope, "factor", 1);
  const std::string type = text(*rope, "rope_type", text(*rope, "type", "default").c_str());
  if (type == "default" || all == 0 || factor <= 1) return plain;
  const double magnitude = 0.1 * all * std::log(factor) + 1;
  return plain * magnitude * magnitude;
}

void check_widths(const Config& c) {
  const uint64_t widest =
      std::max<uint64_t>({uint64_t{c.latent.plain} + c.latent.rope, c.latent.key(), c.head_dim});
  if (c.heads * widest > kWidestHeads || c.latent.query_rank > kWidestHeads)
    refuse(ErrorCode::kCorrupt,
           fmt::format("num_attention_heads {} with kv_lora_rank {}, qk_nope_head_dim {}, "
                       "qk_rope_head_dim {} and v_head_dim {} make more than {} columns",
                       c.heads, c.latent.rank, c.latent.plain, c.latent.rope, c.head_dim,
                       kWidestHeads));
}

}  // namespace

Config decode_latent(const Json& json) {
  Config c = decode_silu(with_rope_head(json));
  if (std::ranges::any_of(c.windows, [](uint32_t window) { return window != 0; }))
    refuse(ErrorCode::kUnsupported, "sliding_window is not supported with latent attention");
  c.latent = {.rank = count(json, "kv_lora_rank"),
              .query_rank = find(json, "q_lora_rank") == nullptr ? 0 : count(json, "q_lora_rank"),
              .plain = count(json, "qk_nope_head_dim"),
              .rope = c.head_dim};
  c.head_dim = count(json, "v_head_dim");
  check_widths(c);
  c.attention_scale = scale_of(json, c.latent.plain + c.latent.rope);
  return c;
}

Config decode_deepseek_v3(const Json& json) {
  Config c = decode_latent(json);
  decode_biased_routing(json, c);
  return c;
}

Config decode_deepseek_v32(const Json& json) {
  Config c = decode_deepseek_v3(json);
  c.latent.choice_heads = count(json, "index_n_heads");
  c.latent.choice_dim = count(json, "index_head_dim");
  c.latent.choice_top_k = count(json, "index_topk");
  if (c.latent.query_rank == 0) refuse(ErrorCode::kCorrupt, "q_lora_rank is missing");
  if (c.latent.choice_dim < c.latent.rope ||
      uint64_t{c.latent.choice_heads} * c.latent.choice_dim > kWidestHeads ||
      c.latent.choice_top_k > kMostChosen)
    refuse(ErrorCode::kCorrupt,
           fmt::format("index_n_heads {}, index_head_dim {} and index_topk {} are out of range",
                       c.latent.choice_heads, c.latent.choice_dim, c.latent.choice_top_k));
  auto rope = std::make_shared<tensor::Rope>(*c.rope);
  rope->interleaved = flag(json, "indexer_rope_interleave", false);
  c.choice_rope = std::move(rope);
  return c;
}

}  // namespace tandem::model
