// One step's ragged batch, as operations see it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kernels/attention.h"
#include "tensor/context.h"
#include "tensor/rope.h"

namespace tandem::tensor {

/// Which tokens of a row need logits.
enum class Wanted : uint8_t { kNone, kLast, kAll };

/// Leaves the recurrent state after the row's first `tokens` tokens in a slot.
struct StateSave {
  uint32_t tokens = 0;
  uint32_t slot = 0;
};

/// A run of new tokens of one request.
struct StepRow {
  uint32_t start = 0;  // position of its first token
  std::vector<int32_t> tokens;
  std::vector<uint32_t> pages;  // covers positions [0, start + tokens.size())
  uint32_t window_start = 0;  // of window_pages, which cover [window_start, start + tokens.size())
  std::vector<uint32_t> window_pages = {};  // of layers that see a window
  std::optional<uint32_t> state = {};       // slot of the recurrent state before tokens[0]
  std::vector<StateSave> saves = {};        // in order; the last one at the row's end
  Wanted logits = Wanted::kNone;
  bool is_chunk = false;  // of the numeric class of prompts
};

/// Flat lists over all tokens, made once a step. Engine thread; outlives the evaluation of its
/// graph.
class Step {
 public:
  Step(std::vector<StepRow> rows, uint32_t page_tokens);

  uint32_t page_tokens() const { return page_tokens_; }
  size_t tokens() const { return ids_.size(); }
  const std::vector<StepRow>& rows() const { return rows_; }
  const std::vector<kernels::AttentionRow>& spans() const { return spans_; }  // one a row
  const std::vector<uint32_t>& ids() const { return ids_; }
  /// The same, [tokens] int32, where some are known to the device only. Set before the graph is
  /// built; plain path.
  const std::optional<array>& id_array() const { return id_array_; }
  void set_id_array(array ids) { id_array_ = std::move(ids); }
  const std::vector<uint32_t>& positions() const { return positions_; }
  const std::vector<uint32_t>& slots() const { return slots_; }      // page * page_tokens + offset
  const std::vector<uint32_t>& outputs() const { return outputs_; }  // whose logits are wanted

  /// Cosines and sines for each token; computed at the first call, by every later layer reused.
  const RopeTable& rope_table(const Rope& rope) const;
  /// The same, times the rope's scale, as arrays [tokens, 1, pairs].
  const std::pair<array, array>& rope_arrays(const Rope& rope) const;
  /// The number of tokens, then their slots: [1 + tokens] uint32.
  const array& slot_array() const;
  /// The pages of all rows, one row after the other: [sum of their numbers] uint32.
  const array& page_array() const;

 private:
  void add_row(const StepRow& row);

  std::vector<StepRow> rows_;
  uint32_t page_tokens_;
  std::vector<kernels::AttentionRow> spans_;
  std::vector<uint32_t> ids_;
  std::optional<array> id_array_;
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> slots_;
  std::vector<uint32_t> outputs_;
  mutable std::map<const Rope*, RopeTable> rope_tables_;
  mutable std::map<const Rope*, std::pair<array, array>> rope_arrays_;
  mutable std::optional<array> slot_array_;
  mutable std::optional<array> page_array_;
};

}  // namespace tandem::tensor
