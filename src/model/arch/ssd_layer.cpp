#include "model/arch/ssd_layer.h"

#include <algorithm>
#include <limits>

namespace tandem::model::arch {
namespace {

constexpr uint64_t kWidestSsd = 1U << 24;  // all heads of a layer, or all groups, together

/// [least, most]; what is larger than any float stands for no limit.
void decode_step_limits(const Json& json, tensor::DeltaShape& shape) {
  constexpr double kMost = std::numeric_limits<float>::max();
  shape.most_dt = std::numeric_limits<float>::max();
  const Json* limits = find(json, "time_step_limit");
  if (limits == nullptr) return;
  const bool is_pair =
      limits->is_array() && limits->size() == 2 && std::ranges::all_of(*limits, &Json::is_number);
  if (!is_pair || (*limits)[0] < 0 || (*limits)[1] < (*limits)[0] || (*limits)[0] > kMost)
    refuse(ErrorCode::kCorrupt,
           fmt::format("time_step_limit should be two numbers, of which the first is 0 or more and "
                       "the second no less, is {}",
                       limits->dump()));
  shape.least_dt = (*limits)[0].get<float>();
  shape.most_dt = static_cast<float>(std::min((*limits)[1].get<double>(), kMost));
}

}  // namespace

SsdLayer::Mixer SsdLayer::make_mixer(const Config& c, const Weights& w, uint32_t index) {
  if (c.is_recurrent[index]) return SsdMixer(w, c);
  if (!c.is_mlp[index]) return Attention(w, c, {.has_rope = false});
  if (!c.has_experts[index]) return SwiGlu(w, c);
  return ExpertMlp(w, c,
                   {.bias = "gate.e_score_correction_bias",
                    .shared = "shared_experts",
                    .latent_in = "fc1_latent_proj",
                    .latent_out = "fc2_latent_proj"});
}

void decode_ssd(const Json& json, const SsdNames& names, Config& c) {
  tensor::DeltaShape shape = {.key_heads = count(json, "n_groups"),
                              .value_heads = count(json, names.heads),
                              .key_dim = count(json, names.state),
                              .value_dim = count(json, names.head_dim),
                              .form = tensor::DeltaForm::kSsd};
  if (shape.value_heads % shape.key_heads != 0)
    refuse(ErrorCode::kCorrupt, fmt::format("{} is {}, no multiple of n_groups {}", names.heads,
                                            shape.value_heads, shape.key_heads));
  const uint64_t values = uint64_t{shape.value_heads} * shape.value_dim;
  if (uint64_t{shape.key_heads} * shape.key_dim > kWidestSsd || values > kWidestSsd ||
      values * shape.key_dim > UINT32_MAX / 2)
    refuse(ErrorCode::kCorrupt,
           fmt::format("heads are too many or too wide: {} is {}, {} {}, {} {}", names.heads,
                       shape.value_heads, names.head_dim, shape.value_dim, names.state,
                       shape.key_dim));
  decode_step_limits(json, shape);
  c.delta = shape;
  c.conv_taps = decode_taps(json, "conv_kernel");
}

}  // namespace tandem::model::arch
