// Ragged rows of operations that carry a state from token to token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tandem::kernels {

/// Leaves the state after the row's first `tokens` tokens in a slot.
struct StateSave {
  uint32_t tokens = 0;
  uint32_t slot = 0;
};

/// New tokens of one request. States lie in a pool [slots, floats]. No slot that a row begins from
/// is one that another row saves to; a row may save to the slot that it begins from.
struct StateRow {
  size_t first_token = 0;  // among all tokens
  size_t count = 0;
  std::optional<uint32_t> state = {};     // slot of the state before the first token; none: zeros
  std::span<const StateSave> saves = {};  // in order of their tokens
};

}  // namespace tandem::kernels
