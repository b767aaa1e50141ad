#include "format/quantization_group.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace tandem::format {
namespace {

/// Whether a module's inputs are cut: those whose outputs the ranks add up.
bool is_cut(std::string_view module) {
  constexpr std::string_view kNames[] = {"o_proj", "out_proj", "down_proj", "w2", "fc2", "dense"};
  const std::string_view name = module.substr(module.rfind('.') + 1);
  return module.starts_with("model.layers.") && std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace

Result<uint32_t> quantization_group(const Checkpoint& checkpoint) {
  constexpr std::string_view kWeight = ".weight";
  uint32_t group = 1;
  for (const std::string& name : checkpoint.names()) {
    if (!name.ends_with(kWeight)) continue;
    const auto module = std::string_view(name).substr(0, name.size() - kWeight.size());
    if (!is_cut(module)) continue;
    const auto found = checkpoint.quantization(module);
    if (!found) return found.error();
    if (*found && (*found)->group_size > 0)
      group = std::lcm(group, static_cast<uint32_t>((*found)->group_size));
  }
  return group;
}

}  // namespace tandem::format
