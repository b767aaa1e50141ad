// Rows of several histories over slots of state, for tests of kernels that carry one.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/data_test.h"
#include "kernels/state_rows.h"

namespace tandem::kernels {

using SlotContents = std::vector<std::vector<float>>;

/// The next tokens of histories, run together. A history has an optional `slot` with its state.
template <class History>
struct StateParts {
  struct Part {
    History& history;
    size_t count;
    std::vector<StateSave> saves;
    std::optional<uint32_t> state;
  };

  size_t state_floats;
  SlotContents& slots;  // grows
  std::vector<Part> parts = {};

  uint32_t new_slot() {
    slots.emplace_back(state_floats, NAN);
    return static_cast<uint32_t>(slots.size() - 1);
  }

  /// The next tokens of a history, with saves on the way from `first_save` on, and some at the end.
  void add_part(
      History& history, size_t count, TestRandom& random, uint32_t first_save, double chance) {
    Part part{history, count, {}, history.slot};
    for (uint32_t at = first_save; at < count; ++at)
      if (random.chance(chance)) part.saves.push_back({at, new_slot()});
    if (random.chance(0.3)) part.saves.push_back({static_cast<uint32_t>(count), new_slot()});
    const bool stays = history.slot && random.chance(0.5);
    history.slot = stays ? *history.slot : new_slot();
    part.saves.push_back({static_cast<uint32_t>(count), *history.slot});
    if (random.chance(0.3)) part.saves.push_back({static_cast<uint32_t>(count), new_slot()});
    parts.push_back(std::move(part));
  }

  /// The parts as rows, one after the other.
  std::vector<StateRow> rows() const {
    std::vector<StateRow> out;
    size_t first = 0;
    for (const Part& part : parts) {
      out.push_back({.first_token = first, .count = part.count});
      out.back().state = part.state;
      out.back().saves = part.saves;
      first += part.count;
    }
    return out;
  }

  /// All slots in one array, `stride` floats apart.
  std::vector<float> states(size_t stride) const {
    std::vector<float> out(slots.size() * stride);
    for (size_t s = 0; s < slots.size(); ++s) std::ranges::copy(slots[s], out.data() + s * stride);
    return out;
  }

  void keep(const std::vector<float>& states, size_t stride) {
    for (size_t s = 0; s < slots.size(); ++s)
      std::copy_n(states.data() + s * stride, state_floats, slots[s].begin());
  }
};

}  // namespace tandem::kernels
