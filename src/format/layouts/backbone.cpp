#include "format/layouts/backbone.h"

#include <fmt/format.h>

#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {
namespace {

constexpr std::string_view kBackbone = "backbone.";

/// Requires a name below the backbone.
std::string usual_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kModules[] = {
      {"embeddings.", "embed_tokens."}, {"norm_f.", "norm."}};
  name.remove_prefix(kBackbone.size());
  for (const auto& [theirs, usual] : kModules)
    if (name.starts_with(theirs))
      return fmt::format("model.{}{}", usual, name.substr(theirs.size()));
  return fmt::format("model.{}", name);
}

Status add_renamed(const std::shared_ptr<const Checkpoint>& from,
                   const std::string& name,
                   Derivations& derivations) {
  const std::string usual = usual_name(name);
  if (from->has(usual))
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} and {} are the same tensor: fetch or convert the checkpoint again",
                             name, usual)};
  const auto stored = from->describe(name);
  if (!stored) return stored.error();
  derivations.hidden.insert(name);
  derivations.tensors[usual] = {
      .dtype = stored->dtype, .shape = stored->shape, .make = [from, name](RowRange rows) {
        return from->tensor(name, rows);
      }};
  constexpr std::string_view kScales = ".scales";
  if (!name.ends_with(kScales)) return {};
  const auto module = [&](std::string_view of) { return of.substr(0, of.size() - kScales.size()); };
  const auto quantization = from->quantization(module(name));
  if (!quantization) return quantization.error();
  if (*quantization) derivations.quantizations.emplace(std::string(module(usual)), **quantization);
  return {};
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> without_backbone(
    std::shared_ptr<const Checkpoint> checkpoint) {
  Derivations derivations;
  for (const std::string& name : checkpoint->names()) {
    if (!name.starts_with(kBackbone)) continue;
    if (Status added = add_renamed(checkpoint, name, derivations); !added) return added.error();
  }
  return derived(std::move(checkpoint), std::move(derivations));
}

}  // namespace tandem::format
