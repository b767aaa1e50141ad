// MiniMax M2: an RMS norm over all query heads together and one over all key heads, experts by a
// biased sigmoid in every layer.
#include <algorithm>

#include "model/arch/moe_layer.h"

namespace tandem::model::arch {
namespace {

struct MiniMaxLayer : MoeLayer {
  MiniMaxLayer(const Config& c, const Weights& w, uint32_t index)
      : MoeLayer(c,
                 w,
                 index,
                 {.attention = {.qk_norm = c.has_qk_norm ? std::optional(c.rms_eps) : std::nullopt,
                                .norms_all_heads = true},
                  .experts = {.bias = "e_score_correction_bias"},
                  .block = "block_sparse_moe"}) {}
};

/// Early models attend by decay in most layers (1: by softmax).
void check_attention_types(const Json& json) {
  const Json* types = find(json, "attn_type_list");
  if (types == nullptr) return;
  const bool is_softmax =
      types->is_array() && std::ranges::all_of(*types, [](const Json& each) { return each == 1; });
  if (!is_softmax)
    refuse(ErrorCode::kUnsupported,
           "attn_type_list has layers of linear attention, which are not supported");
}

Config decode_minimax(const Json& json) {
  check_attention_types(json);
  const std::string score = text(json, "scoring_func", "sigmoid");
  if (score != "sigmoid")
    refuse(ErrorCode::kUnsupported,
           fmt::format("scoring_func {} is not supported; sigmoid is", score));
  if (real(json, "shared_intermediate_size", 0) != 0)
    refuse(ErrorCode::kUnsupported, "shared_intermediate_size above 0 is not supported");
  Config c = decode_silu(with_rotary_dim(json));
  c.has_qk_norm = flag(json, "use_qk_norm", true);
  decode_local_experts(json, c);
  c.routing = {.score = tensor::ExpertScore::kSigmoid, .renormalizes = true};
  return c;
}

}  // namespace

Arch minimax() { return decoder<MiniMaxLayer>("minimax", decode_as<decode_minimax>); }

}  // namespace tandem::model::arch
