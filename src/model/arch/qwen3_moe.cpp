// Qwen3 decoder with experts: qwen3's attention, and in most layers experts in place of the MLP.
#include <variant>

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/experts.h"
#include "model/blocks/mlp.h"

namespace tandem::model::arch {
namespace {

struct Qwen3MoeLayer {
  tensor::RmsNorm input_norm;
  Attention attention;
  tensor::RmsNorm post_norm;
  std::variant<SwiGlu, ExpertMlp> mlp;

  Qwen3MoeLayer(const Config& c, const Weights& w, uint32_t index)
      : input_norm(w / "input_layernorm", c.rms_eps),
        attention(w / "self_attn", c, {.window = c.windows[index], .qk_norm = c.rms_eps}),
        post_norm(w / "post_attention_layernorm", c.rms_eps),
        mlp(make_mlp(c, w / "mlp", index)) {}

  static std::variant<SwiGlu, ExpertMlp> make_mlp(const Config& c,
                                                  const Weights& w,
                                                  uint32_t index) {
    if (c.has_experts[index]) return ExpertMlp(w, c);
    return SwiGlu(w, c);
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const auto [h, normed] = post_norm.of_sum(x, attention(input_norm(x), kv, step));
    return h + std::visit([&x = normed](const auto& each) { return each(x); }, mlp);
  }
};

}  // namespace

Arch qwen3_moe() { return decoder<Qwen3MoeLayer>("qwen3_moe", decode_qwen3_moe_config); }

}  // namespace tandem::model::arch
