#include "model/arch.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/nearest_name.h"

namespace tandem::model {
namespace {

Error other_experts(uint32_t experts, const std::string& found) {
  return {ErrorCode::kCorrupt,
          fmt::format("config: num_experts is {}, but {}: set it to the number of experts that the "
                      "checkpoint holds, or fetch config.json and the weights again",
                      experts, found)};
}

bool is_of_router(std::string_view leaf) {
  return leaf.starts_with("gate.") || leaf.starts_with("router.");
}

/// Of a projection of all experts.
bool is_of_all_experts(std::string_view leaf) {
  constexpr std::string_view kStart[] = {"switch_mlp.", "experts.gate_proj.", "experts.up_proj.",
                                         "experts.down_proj."};
  return std::ranges::any_of(kStart, [&](std::string_view s) { return leaf.starts_with(s); });
}

/// Routers and stacks have one row for each expert, routers also for those that are identities, and
/// there are no experts beyond: otherwise a part of them would be used without a word.
Status check_experts(const format::Checkpoint& checkpoint, const Config& config) {
  constexpr std::string_view kBlocks[] = {".mlp.", ".block_sparse_moe.", ".feed_forward.", ".moe.",
                                          ".mixer."};
  constexpr std::string_view kOne = "experts.";
  for (const std::string& name : checkpoint.names()) {
    const auto block = std::ranges::find_if(
        kBlocks, [&](std::string_view b) { return name.find(b) != std::string::npos; });
    if (block == std::end(kBlocks)) continue;
    const auto leaf = std::string_view(name).substr(name.find(*block) + block->size());
    const uint32_t experts = config.experts + (is_of_router(leaf) ? config.identity_experts : 0);
    if (is_of_router(leaf) || is_of_all_experts(leaf)) {
      const auto tensor = checkpoint.describe(name);
      if (!tensor) return tensor.error();
      const int64_t rows = tensor->shape.empty() ? 0 : tensor->shape[0];
      if (rows != int64_t{experts})
        return other_experts(experts, fmt::format("{} is of {}", name, rows));
    } else if (leaf.starts_with(kOne)) {
      const auto number = leaf.substr(kOne.size());
      uint32_t index = 0;
      const auto end = std::from_chars(number.data(), number.data() + number.size(), index);
      if (end.ec != std::errc() || index >= experts)
        return other_experts(experts, fmt::format("there is {}", name));
    }
  }
  return {};
}

/// A table of another number of rows has rows that no token names, or lacks some.
Status check_vocab(const format::Checkpoint& checkpoint, const Arch& arch, const Config& config) {
  for (const std::string& name :
       {fmt::format("model.{}.weight", arch.embedding), std::string("lm_head.weight")}) {
    const bool is_unused = config.has_tied_head && name == "lm_head.weight";
    if (is_unused || !checkpoint.has(name)) continue;  // a missing one is named where it is loaded
    const auto tensor = checkpoint.describe(name);
    if (!tensor) return tensor.error();
    const int64_t rows = tensor->shape.empty() ? 0 : tensor->shape[0];
    if (rows == int64_t{config.vocab}) continue;
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("config: vocab_size is {}, but {} has {} rows: set it to the number of "
                    "rows, or fetch config.json and the weights again",
                    config.vocab, name, rows)};
  }
  return {};
}

}  // namespace

#define X(name) Arch name();
namespace arch {
#include "model/arch/registry.inc"
}
#undef X

const std::vector<Arch>& archs() {
#define X(name) arch::name(),
  static const std::vector<Arch> all = {
#include "model/arch/registry.inc"
  };
#undef X
  return all;
}

Result<Arch> find_arch(const nlohmann::json& config) {
  const auto type = config.find("model_type");
  const std::string name =
      type != config.end() && type->is_string() ? type->get<std::string>() : std::string("(none)");
  std::vector<std::string_view> known;
  for (const Arch& a : archs()) {
    if (a.model_type == name) return a;
    known.push_back(a.model_type);
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("model_type {} is not supported; the nearest family is {}, and these are "
                  "served: {}. docs/models.md says what is planned",
                  name, nearest_name(name, known), fmt::join(known, ", "))};
}

Result<Description> describe(const format::Checkpoint& checkpoint) {
  const auto arch = find_arch(checkpoint.config());
  if (!arch) return arch.error();
  auto config = arch->decode(checkpoint.config());
  if (!config) return config.error();
  if (config->experts != 0) {
    const Status agree = check_experts(checkpoint, *config);
    if (!agree) return agree.error();
  }
  const nlohmann::json& json = checkpoint.config();
  const auto says = [&](const char* key) { return json.contains(key) && !json[key].is_null(); };
  if (!says("tie_word_embeddings") && !says("tie_embedding"))
    config->has_tied_head = !checkpoint.has("lm_head.weight");
  if (Status vocab = check_vocab(checkpoint, *arch, *config); !vocab) return vocab.error();
  if (arch->settle != nullptr) arch->settle(checkpoint, *config);
  return Description{*arch, *std::move(config)};
}

std::vector<kv::LayerShape> layer_shapes(const Description& model,
                                         const topology::Part& part,
                                         bool frees_windows) {
  const Config& c = model.config;
  std::vector<kv::LayerShape> out;
  for (uint32_t i = part.layers.begin; i < part.layers.end; ++i) {
    if (!c.is_recurrent.empty() && c.is_recurrent[i]) {
      out.push_back({.state_floats = model.arch.state_floats(c, part)});
      continue;
    }
    if (!c.is_mlp.empty() && c.is_mlp[i]) {
      out.emplace_back();
      continue;
    }
    if (!c.has_own_kv(i)) {
      out.push_back({.source = c.kv_sources[i] - part.layers.begin});
      continue;
    }
    if (c.latent.rank != 0) {
      out.push_back({.kv_heads = part.heads.empty() ? 0U : 1U,
                     .head_dim = c.latent.key(),
                     .latent_dim = c.latent.rank,
                     .attentions = c.attentions,
                     .choice_dim = part.heads.empty() ? 0U : c.latent.choice_dim});
      continue;
    }
    const bool has_window = c.sees_window(i);
    const topology::HeadPart heads = topology::heads_of(c.shape(), part, has_window);
    out.push_back({.group = has_window && frees_windows ? tensor::PageGroup::kWindow
                                                        : tensor::PageGroup::kAll,
                   .kv_heads = heads.kv_heads.size(),
                   .head_dim = heads.whole.head_dim,
                   .value_dim = heads.whole.value_dim,
                   .choice_dim = c.is_sparse(i) && !heads.kv_heads.empty() ? c.sparse.dim : 0U,
                   .kept_choice = c.is_sparse(i) ? heads.kv_heads.size() * c.sparse.top_k : 0U});
  }
  return out;
}

uint32_t widest_window(const Config& config) {
  return config.windows.empty() ? 0 : *std::ranges::max_element(config.windows);
}

}  // namespace tandem::model
