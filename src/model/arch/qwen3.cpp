// Qwen3 dense decoder: grouped-query attention with an RMS norm of each q and k head, SwiGLU MLP.
#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/mlp.h"

namespace tandem::model::arch {
namespace {

struct Qwen3Layer {
  tensor::RmsNorm input_norm;
  Attention attention;
  tensor::RmsNorm post_norm;
  SwiGlu mlp;

  Qwen3Layer(const Config& c, const Weights& w, uint32_t index)
      : input_norm(w / "input_layernorm", c.rms_eps),
        attention(w / "self_attn", c, {.window = c.windows[index], .qk_norm = c.rms_eps}),
        post_norm(w / "post_attention_layernorm", c.rms_eps),
        mlp(w / "mlp", c) {}

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const auto [h, normed] = post_norm.of_sum(x, attention(input_norm(x), kv, step));
    return h + mlp(normed);
  }
};

}  // namespace

Arch qwen3() { return decoder<Qwen3Layer>("qwen3", decode_llama_config); }

}  // namespace tandem::model::arch
