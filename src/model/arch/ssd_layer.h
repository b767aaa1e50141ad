// The layer of Mamba 2 and its hybrids.
#pragma once

#include <variant>

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/experts.h"
#include "model/blocks/mlp.h"
#include "model/blocks/ssd.h"
#include "model/config_fields.h"

namespace tandem::model::arch {

/// One operation after an RMS norm: Mamba 2's, attention without a rope, an MLP, or experts.
struct SsdLayer {
  using Mixer = std::variant<SsdMixer, Attention, SwiGlu, ExpertMlp>;
  tensor::RmsNorm norm;
  Mixer mixer;

  SsdLayer(const Config& c, const Weights& w, uint32_t index)
      : norm(w / "norm", c.rms_eps), mixer(make_mixer(c, w / "mixer", index)) {}

  static Mixer make_mixer(const Config& c, const Weights& w, uint32_t index);

  static uint32_t state_floats(const Config& c, const topology::Part& part) {
    return SsdMixer::state_floats(c, part);
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const array normed = norm(x);
    return x + std::visit(
                   [&](const auto& each) {
                     if constexpr (requires { each(normed, kv, step); })
                       return each(normed, kv, step);
                     else
                       return each(normed);
                   },
                   mixer);
  }
};

/// What families call differently.
struct SsdNames {
  const char* heads;
  const char* head_dim;
  const char* state;
};

/// Puts heads, groups, the convolution and the limits of a token's step into a config.
void decode_ssd(const Json& json, const SsdNames& names, Config& config);

}  // namespace tandem::model::arch
