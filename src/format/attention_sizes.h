// How families say which heads their layers have, and which layers share keys and values.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/result.h"

namespace tandem::format {

/// The heads of a kind of layer.
struct HeadSizes {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;   // unless given: heads
  uint32_t head_dim = 0;   // unless given: hidden / heads
  uint32_t value_dim = 0;  // of values, where they are not as wide; otherwise 0

  bool operator==(const HeadSizes&) const = default;
};

/// Of layers that see all positions, and of all layers in most families; of mamba2, which does not
/// attend, those of its states. Errors: kCorrupt by the
/// field's name.
Result<HeadSizes> read_heads(const nlohmann::json& config);

/// Of layers that see a window, where a family gives them heads of their own; otherwise none
/// (heads is 0). Errors: as read_heads().
Result<HeadSizes> read_window_heads(const nlohmann::json& config);

/// For each layer the one whose keys and values it attends to: in gemma4 the last layers have none
/// of their own and take those of the last layer before them that is of their kind. Empty where
/// every layer has its own. Errors: kCorrupt (more such layers than there are, none to take from).
Result<std::vector<uint32_t>> read_kv_sources(const nlohmann::json& config, uint32_t layers);

}  // namespace tandem::format
