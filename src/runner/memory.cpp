#include "runner/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>

#include "format/mtp.h"
#include "tensor/rounds.h"

namespace tandem::runner {
namespace {

using topology::Part;

double fraction(topology::Range range, uint32_t total) {
  return total == 0 ? 0 : static_cast<double>(range.size()) / total;
}

constexpr std::string_view kLayers = "model.layers.";

/// Requires the name of a layer's tensor.
uint32_t layer_of(std::string_view name) {
  const std::string rest(name.substr(kLayers.size()));
  return static_cast<uint32_t>(std::strtoul(rest.c_str(), nullptr, 10));
}

/// The heads of the layer that a tensor is of.
topology::HeadPart heads_of(std::string_view name, const model::Config& c, const Part& part) {
  const uint32_t layer = name.starts_with(kLayers) ? layer_of(name) : 0;
  return topology::heads_of(c.shape(), part, layer < c.layers && c.sees_window(layer));
}

/// Of the modules of Mamba 2; what all heads share is on every rank.
double share_of_ssd(std::string_view module, const model::Config& c, const Part& part) {
  const tensor::DeltaShape &all = c.delta, own = all.with(all.heads_in(part.channels));
  const auto rows = [](const tensor::DeltaShape& s) {
    return s.qkv() + s.values() + s.value_heads;
  };
  if (module.starts_with("in_proj.")) return static_cast<double>(rows(own)) / rows(all);
  if (module.starts_with("conv1d.")) return static_cast<double>(own.qkv()) / all.qkv();
  return fraction(part.channels, c.shape().channels);
}

/// Of the modules of attention whose past is a state, but for Mamba 2.
double share_of_linear(std::string_view module, const model::Config& c, const Part& part) {
  constexpr std::string_view kWhole[] = {"f_a_proj.", "g_a_proj.", "o_norm.", "query_layernorm.",
                                         "key_layernorm."};
  const bool is_whole =
      std::ranges::any_of(kWhole, [&](std::string_view each) { return module.starts_with(each); });
  if (is_whole) return part.channels.empty() ? 0 : 1;
  return fraction(part.channels, c.shape().channels);
}

/// Of a tensor in what a layer with a state has in place of attention; nullopt for others.
std::optional<double> share_of_state(std::string_view name, const model::Config& c, const Part& p) {
  const bool is_recurrent = name.starts_with(kLayers) && layer_of(name) < c.is_recurrent.size() &&
                            c.is_recurrent[layer_of(name)];
  if (!is_recurrent) return std::nullopt;
  for (const std::string_view block : {".mixer.", ".self_attn.", ".attention."}) {
    const size_t at = name.find(block);
    if (at == std::string_view::npos) continue;
    const std::string_view module = name.substr(at + block.size());
    return block == ".mixer." ? share_of_ssd(module, c, p) : share_of_linear(module, c, p);
  }
  return std::nullopt;
}

/// The share of a tensor that a rank loads, by the module it belongs to.
double share_of(std::string_view name, const model::Config& c, const Part& part) {
  if (const auto share = share_of_state(name, c, part)) return *share;
  const topology::HeadPart own = heads_of(name, c, part);
  const auto is_in = [&](std::string_view module) {
    return name.find(module) != std::string_view::npos;
  };
  if (is_in(".linear_attn.")) return fraction(part.channels, c.shape().channels);
  if (is_in(".qkv_proj."))
    return fraction(
        {2 * own.kv_heads.begin + own.heads.begin, 2 * own.kv_heads.end + own.heads.end},
        2 * own.whole.kv_heads + own.whole.heads);
  if (is_in(".gate_up_proj.")) return fraction(part.mlp, c.mlp);
  if (is_in(".conv.in_proj.") || is_in(".conv.out_proj.") || is_in(".conv.conv."))
    return fraction(part.channels, c.hidden);
  if (is_in(".q_b_proj.") || is_in(".kv_b_proj.") || is_in(".embed_q.") || is_in(".unembed_out."))
    return fraction(part.heads, c.heads);
  if (is_in(".q_proj.") || is_in(".o_proj.") || is_in(".self_attn.out_proj.") ||
      is_in(".attention.dense."))
    return fraction(own.heads, own.whole.heads);
  if (is_in(".k_proj.") || is_in(".v_proj.") || is_in(".index_q_proj."))
    return fraction(own.kv_heads, own.whole.kv_heads);
  if (is_in("embed_tokens_per_layer."))
    return fraction(part.vocab, c.vocab) * fraction(part.layers, c.layers);
  if (is_in("per_layer_model_projection.")) return fraction(part.layers, c.layers);
  if (is_in(".experts.down_proj.bias")) return part.expert_mlp.begin == 0 ? 1 : 0;  // added once
  if (is_in(".switch_mlp.") || is_in(".experts.") || is_in(".shared_expert") ||
      is_in(".share_expert.") || is_in(".moe."))
    return fraction(part.expert_mlp, c.expert_mlp);
  if (is_in(".gate.gate_proj.")) return 1;  // a router
  if (is_in(".gate_proj.") || is_in(".up_proj.") || is_in(".down_proj.") ||
      is_in(".feed_forward.w"))
    return fraction(part.mlp, c.mlp);
  const bool is_table = is_in("embed_tokens.") || is_in("word_embeddings.");
  const bool is_head = is_in("lm_head.");
  const bool is_needed =
      is_table  ? part.has_embedding || c.layer_inputs != 0 || (part.has_head && c.has_tied_head)
      : is_head ? part.has_head && !c.has_tied_head
                : true;
  if (!is_needed) return 0;
  return is_table || is_head ? fraction(part.vocab, c.vocab) : 1;
}

/// Whether this rank holds nothing of a tensor because it is of another layer, or of none.
bool is_other_layer(std::string_view name, const Part& part) {
  if (format::is_mtp(name)) return true;
  return name.starts_with(kLayers) && !part.layers.contains(layer_of(name));
}

/// Bytes of a whole tensor once it is loaded.
Result<uint64_t> bytes_of(const format::Checkpoint& checkpoint,
                          std::string_view name,
                          const MemoryAssumptions& a) {
  constexpr std::string_view kWeight = ".weight";
  const auto tensor = checkpoint.describe(name);
  if (!tensor) return tensor.error();
  uint64_t elements = 1;
  for (const int64_t n : tensor->shape) elements *= static_cast<uint64_t>(n);
  if (tensor->dtype != format::Dtype::kU32)
    return elements * (a.is_packed ? format::size_of(tensor->dtype) : a.element_bytes);
  const uint64_t words = elements * format::size_of(tensor->dtype);
  if (!a.is_packed || !name.ends_with(kWeight)) return words;
  const auto kind = checkpoint.quantization(name.substr(0, name.size() - kWeight.size()));
  if (!kind) return kind.error();
  const int bits = *kind ? (*kind)->bits : 8;
  return std::has_single_bit(static_cast<unsigned>(bits)) ? words
                                                          : words * 8 / static_cast<unsigned>(bits);
}

/// The same of kv_b_proj where it is quantized: the rows that make keys are held turned, which
/// codes cannot be.
Result<uint64_t> kv_b_bytes(const format::Checkpoint& checkpoint,
                            std::string_view name,
                            const model::Config& c,
                            const MemoryAssumptions& a) {
  const auto codes = bytes_of(checkpoint, name, a);
  const std::string module(name.substr(0, name.rfind('.')));
  const auto scales = checkpoint.describe(module + ".scales");
  if (!codes || !scales) return codes;  // dense
  const double of_keys = static_cast<double>(c.latent.plain) / (c.latent.plain + c.head_dim);
  const double rest = static_cast<double>(*codes) * (1 - of_keys);
  if (!name.ends_with(".weight")) return static_cast<uint64_t>(rest);
  const bool is_wide = scales->dtype == format::Dtype::kF32;
  const uint32_t size = !a.is_packed ? a.element_bytes : is_wide ? 4 : 2;
  const double turned = static_cast<double>(c.heads) * c.latent.plain * c.latent.rank * size;
  return static_cast<uint64_t>(rest + turned);
}

/// Of a token in a layer with a state: projections, what the convolution makes of them, and what
/// is read; where projections lie apart, also all of them side by side.
uint64_t state_columns(const model::Config& c, const Part& part) {
  if (c.delta.key_heads == 0) return uint64_t{4} * part.channels.size();
  const tensor::DeltaShape own = c.delta.with(c.delta.heads_in(part.channels));
  const bool is_apart = own.form == tensor::DeltaForm::kChannelDelta || c.conv_taps == 0;
  return (is_apart ? uint64_t{3} : 2) * own.qkv() + uint64_t{3} * own.values();
}

/// Of a token in latent attention: heads' queries before and after they are latent, what they find,
/// their values, and the latent vector before and after its norm.
uint64_t latent_columns(const model::Config& c, const Part& part) {
  const uint64_t head =
      c.latent.plain + c.latent.rope + c.latent.key() + c.latent.rank + uint64_t{c.head_dim};
  return head * part.heads.size() + 2 * uint64_t{c.head_dim} * part.kv_heads.size() +
         c.latent.query_rank + 2 * uint64_t{c.latent.key()} +
         uint64_t{c.latent.choice_heads} * (c.latent.choice_dim + 1) + c.latent.choice_top_k;
}

/// What a round of the plain path's choice of blocks, or of attention to them, holds: keys and
/// values, or scores, what became of those, and their mask.
uint64_t round_bytes(const model::Config& c, const Part& part, const MemoryAssumptions& a) {
  if (c.sparse.block == 0 || a.is_packed) return 0;
  const uint64_t taken = uint64_t{c.sparse.top_k} * c.sparse.block * c.head_dim;
  const uint64_t numbers =
      a.step_tokens * part.kv_heads.size() * std::max<uint64_t>(taken, c.max_positions);
  return std::min<uint64_t>(numbers, tensor::kRoundNumbers) * 3 * sizeof(float);
}

/// Matrices that live at once in a layer, and one row of logits for each row of the largest step.
uint64_t workspace_of(const model::Config& c, const Part& part, const MemoryAssumptions& a) {
  uint64_t attention = 0;  // a query, perhaps its gate, and what they read
  for (const bool sees_window : {false, true}) {
    const topology::HeadPart own = topology::heads_of(c.shape(), part, sees_window);
    attention = std::max(
        attention, uint64_t{own.whole.head_dim} * (3 * own.heads.size() + 2 * own.kv_heads.size()));
  }
  if (c.latent.rank != 0) attention = latent_columns(c, part);
  if (c.sparse.block != 0)
    attention += uint64_t{part.kv_heads.size()} * (2 * c.sparse.dim + c.sparse.top_k) +
                 2 * uint64_t{c.sparse.dim};
  const uint64_t mlp = uint64_t{c.wide_mlps_from == 0 ? 3U : 6U} * part.mlp.size();
  const uint64_t told = uint64_t{3} * c.layer_inputs * part.layers.size();
  // A token's rows of an expert's gate, up and down, and of what it takes in, sorted by expert.
  const uint64_t experts =
      uint64_t{c.experts_of_token} * (3 * part.expert_mlp.size() + 2 * c.hidden);
  const uint64_t widest = std::max({attention, mlp, experts, state_columns(c, part)});
  return round_bytes(c, part, a) +
         a.step_tokens * a.element_bytes * (uint64_t{4} * c.hidden + told + widest) +
         uint64_t{plan::kMostRows} * a.logit_copies * sizeof(float) * (part.has_head ? c.vocab : 0);
}

}  // namespace

Result<MemoryNeed> estimate(const format::Checkpoint& checkpoint,
                            const model::Description& model,
                            const Part& part,
                            const MemoryAssumptions& assumptions) {
  MemoryNeed need;
  for (const std::string& name : checkpoint.names()) {
    if (is_other_layer(name, part)) continue;
    const bool is_kv_b = name.find(".kv_b_proj.") != std::string::npos;
    const auto bytes = is_kv_b ? kv_b_bytes(checkpoint, name, model.config, assumptions)
                               : bytes_of(checkpoint, name, assumptions);
    if (!bytes) return bytes.error();
    need.weights +=
        static_cast<uint64_t>(static_cast<double>(*bytes) * share_of(name, model.config, part));
  }
  need.workspace = workspace_of(model.config, part, assumptions);
  for (const kv::LayerShape& layer : model::layer_shapes(model, part, assumptions.frees_windows)) {
    const bool has_window = layer.group == tensor::PageGroup::kWindow;
    (has_window ? need.window_page : need.page) +=
        layer.page_bytes(assumptions.page_tokens, assumptions.kv_bytes);
    need.slot += layer.slot_bytes();
  }
  return need;
}

}  // namespace tandem::runner
