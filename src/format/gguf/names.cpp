// Tensor names in the spelling of the Hugging Face layout.
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "format/gguf/architecture.h"

namespace tandem::format {
namespace {

constexpr std::array<GgufName, 3> kUsualWhole{
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}}};

/// Of a layer, as most architectures have them.
constexpr std::array<GgufName, 23> kUsual{{
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"attn_norm", "input_layernorm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.switch_mlp.gate_proj"},
    {"ffn_up_exps", "mlp.switch_mlp.up_proj"},
    {"ffn_gate_up_exps", "mlp.switch_mlp.gate_up_proj"},
    {"ffn_down_exps", "mlp.switch_mlp.down_proj"},
    // Modules behind the layers, for predicting further tokens.
    {"nextn.eh_proj", "eh_proj"},
    {"nextn.enorm", "enorm"},
    {"nextn.hnorm", "hnorm"},
    {"nextn.embed_tokens", "embed_tokens"},
    {"nextn.shared_head_head", "shared_head.head"},
    {"nextn.shared_head_norm", "shared_head.norm"},
}};

template <class Names>
std::string_view look_up(const Names& names, std::string_view key) {
  for (const auto& [from, to] : names)
    if (from == key) return to;
  return {};
}

/// Takes "blk.N." off a name; nullopt where it does not begin so.
std::optional<int> take_layer(std::string_view& name) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return std::nullopt;
  const std::string_view rest = name.substr(kBlock.size());
  int layer = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  if (problem != std::errc() || end == rest.data() + rest.size() || *end != '.' || layer < 0)
    return std::nullopt;
  name = rest.substr(static_cast<size_t>(end - rest.data()) + 1);
  return layer;
}

/// The name behind that of the layer, if there is one; empty when it is not known.
std::string inner_name(std::string_view name, const GgufArchitecture& architecture, bool in_layer) {
  if (const auto whole = look_up(architecture.names, name); !whole.empty())
    return std::string(whole);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view kind = name.substr(dot + 1), module = name.substr(0, dot);
  if (kind != "weight" && kind != "bias") return {};
  std::string_view mapped = look_up(architecture.names, module);
  if (mapped.empty()) mapped = in_layer ? look_up(kUsual, module) : look_up(kUsualWhole, module);
  return mapped.empty() ? std::string() : fmt::format("{}.{}", mapped, kind);
}

}  // namespace

std::string hugging_face_name(std::string_view gguf_name, const GgufArchitecture& architecture) {
  const auto layer = take_layer(gguf_name);
  const std::string inner = inner_name(gguf_name, architecture, layer.has_value());
  if (!layer || inner.empty()) return inner;
  return fmt::format("model.layers.{}.{}", *layer, inner);
}

}  // namespace tandem::format
