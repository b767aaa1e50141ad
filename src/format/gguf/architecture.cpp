#include "format/gguf/architecture.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/nearest_name.h"

namespace tandem::format {

#define X(name) GgufArchitecture name();
namespace gguf_arch {
#include "format/gguf/registry.inc"
}
#undef X

namespace {

const std::vector<GgufArchitecture>& architectures() {
#define X(name) gguf_arch::name(),
  static const std::vector<GgufArchitecture> all = {
#include "format/gguf/registry.inc"
  };
#undef X
  return all;
}

/// What any architecture's file may have: gate and up of all experts in one tensor.
const std::vector<GgufConversion>& usual_conversions() {
  static const std::vector<GgufConversion> usual = {
      {"switch_mlp.gate_up_proj", first_half, "switch_mlp.gate_proj"},
      {"switch_mlp.gate_up_proj", second_half, "switch_mlp.up_proj"},
      {"switch_glu.gate_up_proj", first_half, "switch_glu.gate_proj"},
      {"switch_glu.gate_up_proj", second_half, "switch_glu.up_proj"}};
  return usual;
}

/// A name cut into its module and the rest, ".weight" and the like or nothing.
std::pair<std::string_view, std::string_view> cut_leaf(std::string_view name) {
  for (const std::string_view leaf : {".weight", ".scales", ".biases", ".bias"})
    if (name.ends_with(leaf)) return {name.substr(0, name.size() - leaf.size()), leaf};
  return {name, {}};
}

Status convert(const Checkpoint& from,
               const std::string& name,
               const GgufConversion& conversion,
               Derivations& out) {
  const auto [module, leaf] = cut_leaf(name);
  auto stored = whole_tensor(from, name);
  if (!stored) return stored.error();
  auto made = conversion.convert(*std::move(stored), from.config());
  if (!made)
    return Error{made.error().code, fmt::format("gguf: {}: {}", name, made.error().message)};
  if (conversion.becomes.empty()) {
    out.tensors[name] = *std::move(made);
    return {};
  }
  const std::string becomes = fmt::format(
      "{}{}", module.substr(0, module.size() - conversion.module.size()), conversion.becomes);
  out.tensors[becomes + std::string(leaf)] = *std::move(made);
  out.hidden.insert(name);
  const auto quantization = from.quantization(module);
  if (!quantization) return quantization.error();
  if (*quantization) out.quantizations[becomes] = **quantization;
  return {};
}

}  // namespace

Result<GgufArchitecture> find_gguf_architecture(std::string_view name) {
  std::vector<std::string_view> known;
  for (const GgufArchitecture& each : architectures()) {
    if (each.name == name) return each;
    known.push_back(each.name);
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("gguf: architecture {} is not supported; the nearest is {}, and these "
                           "are read: {}",
                           name, nearest_name(name, known), fmt::join(known, ", "))};
}

Result<std::shared_ptr<const Checkpoint>> converted_from_gguf(
    std::shared_ptr<const Checkpoint> checkpoint, const GgufArchitecture& architecture) {
  Derivations derivations;
  for (const std::string& name : checkpoint->names()) {
    const std::string_view module = cut_leaf(name).first;
    for (const auto* conversions : {&architecture.conversions, &usual_conversions()})
      for (const GgufConversion& each : *conversions)
        if (module.ends_with(each.module))
          if (Status done = convert(*checkpoint, name, each, derivations); !done)
            return done.error();
  }
  return derived(std::move(checkpoint), std::move(derivations));
}

}  // namespace tandem::format
