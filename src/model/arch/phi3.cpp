// Phi 3 and 4: llama with q, k, v in one matrix, gate and up in another, and longrope.
#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/mlp.h"
#include "model/config_fields.h"

namespace tandem::model::arch {
namespace {

struct Phi3Layer {
  tensor::RmsNorm input_norm;
  Attention attention;
  tensor::RmsNorm post_norm;
  SwiGlu mlp;

  Phi3Layer(const Config& c, const Weights& w, uint32_t index)
      : input_norm(w / "input_layernorm", c.rms_eps),
        attention(w / "self_attn", c, {.window = c.windows[index], .fused = "qkv_proj"}),
        post_norm(w / "post_attention_layernorm", c.rms_eps),
        mlp(w / "mlp", c) {}

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const auto [h, normed] = post_norm.of_sum(x, attention(input_norm(x), kv, step));
    return h + mlp(normed);
  }
};

}  // namespace

Arch phi3() {
  return decoder<Phi3Layer>("phi3", [](const Json& json) { return decoded(decode_silu, json); });
}

}  // namespace tandem::model::arch
