// The sizes in a checkpoint's config, read the same way by all who need them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/result.h"
#include "format/attention_sizes.h"

namespace tandem::format {

struct ModelSizes {
  uint32_t hidden = 0;
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;                  // unless given: heads
  uint32_t head_dim = 0;                  // unless given: hidden / heads
  uint32_t value_dim = 0;                 // of values, where they are not as wide; otherwise 0
  uint32_t mlp = 0;                       // unless given: expert_mlp
  uint32_t expert_mlp = 0;                // of each expert; unless given: 0
  uint32_t vocab = 0;                     // rows of logits; a tokenizer may know fewer ids
  uint32_t max_positions = 0;             // unless given, by one of two names: 32768
  HeadSizes window = {};                  // of layers that see a window, where theirs are others
  std::vector<uint32_t> kv_sources = {};  // see read_kv_sources()

  /// How many last layers must lie together, since some of them read what others keep.
  uint32_t joined_layers() const;

  bool operator==(const ModelSizes&) const = default;
};

/// A positive integer. Null counts as absent, and what is absent is `otherwise`. Errors: kCorrupt
/// by the field's name.
Result<uint32_t> read_count(const nlohmann::json& config,
                            const char* key,
                            std::optional<uint32_t> otherwise = std::nullopt);

/// Errors: kCorrupt by the field's name.
Result<ModelSizes> read_sizes(const nlohmann::json& config);

}  // namespace tandem::format
