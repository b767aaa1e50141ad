// Modules that predict several tokens at once (multi-token prediction).
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem::format {

/// Where publishers keep such modules beside the layers (qwen3_next, qwen3_5, nemotron_h, mimo).
/// Others number them after the layers: num_nextn_predict_layers in config.json says how many. No
/// model uses them yet; they stay in the checkpoint, to be loaded by who does.
inline constexpr std::array<std::string_view, 3> kMtpModules = {"mtp", "model.mtp",
                                                                "model.mtp_layers"};

/// Whether a tensor belongs to one.
inline bool is_mtp(std::string_view name) {
  return std::ranges::any_of(kMtpModules, [&](std::string_view module) {
    return name.starts_with(module) && name.substr(module.size()).starts_with('.');
  });
}

}  // namespace tandem::format
