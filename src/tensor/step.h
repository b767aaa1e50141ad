// One step's ragged batch, as operations see it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/state_rows.h"
#include "tensor/context.h"
#include "tensor/index_reuse.h"
#include "tensor/rope.h"

namespace tandem::tensor {

/// Which tokens of a row need logits.
enum class Wanted : uint8_t { kNone, kLast, kAll };

/// Layers whose keys and values lie in the same pages of a row.
enum class PageGroup : uint8_t {
  kAll,     // of every position
  kWindow,  // of those that a window shows: earlier pages are given back
};

using kernels::StateSave;

/// A run of new tokens of one request.
struct StepRow {
  uint32_t start = 0;  // position of its first token
  std::vector<int32_t> tokens;
  std::vector<uint32_t> pages;  // covers positions [0, start + tokens.size())
  uint32_t window_start = 0;  // of window_pages, which cover [window_start, start + tokens.size())
  std::vector<uint32_t> window_pages = {};  // of layers that see a window, where these differ
  std::optional<uint32_t> state = {};       // slot of the recurrent state before tokens[0]
  std::vector<StateSave> saves = {};        // in order; the last one at the row's end
  Wanted logits = Wanted::kNone;
  bool is_chunk = false;  // of the numeric class of prompts
  uint32_t pooled = 0;    // so many of its last tokens, whose hidden states are summed up
  std::optional<IndexReuse> reuse = {};  // where layers choose blocks of keys
};

/// Tokens of a row that are pooled, among the step's.
struct PooledTokens {
  size_t first = 0;
  size_t count = 0;
};

/// Flat lists over all tokens, made once a step. Engine thread; outlives the evaluation of its
/// graph.
class Step {
 public:
  /// Rows have window_pages all or none.
  Step(std::vector<StepRow> rows, uint32_t page_tokens);

  uint32_t page_tokens() const { return page_tokens_; }
  size_t tokens() const { return ids_.size(); }
  const std::vector<StepRow>& rows() const { return rows_; }
  /// One a row. Pages in front of a window are 0: nobody looks at them.
  const std::vector<kernels::AttentionRow>& spans(PageGroup group = PageGroup::kAll) const {
    return paging(group).spans;
  }
  const std::vector<uint32_t>& ids() const { return ids_; }
  /// The same, [tokens] int32, where some are known to the device only. Set before the graph is
  /// built; plain path.
  const std::optional<array>& id_array() const { return id_array_; }
  void set_id_array(array ids) { id_array_ = std::move(ids); }
  const std::vector<uint32_t>& positions() const { return positions_; }
  /// page * page_tokens + offset, one a token.
  const std::vector<uint32_t>& slots(PageGroup group = PageGroup::kAll) const {
    return paging(group).slots;
  }
  /// One a row: where its recurrent state comes from and goes.
  const std::vector<kernels::StateRow>& state_rows() const { return state_rows_; }
  const std::vector<uint32_t>& outputs() const { return outputs_; }    // whose logits are wanted
  const std::vector<PooledTokens>& pooled() const { return pooled_; }  // of rows that want it
  /// Whether any row does.
  bool reuses_choices() const { return reuses_choices_; }

  /// Cosines and sines for each token; computed at the first call, by every later layer reused.
  const RopeTable& rope_table(const Rope& rope) const;
  /// The same, times the rope's scale, as arrays [tokens, 1, pairs].
  const std::pair<array, array>& rope_arrays(const Rope& rope) const;
  /// The number of tokens, then their slots: [1 + tokens] uint32.
  const array& slot_array(PageGroup group = PageGroup::kAll) const;
  /// The pages of all rows as they list them, one row after the other: [sum of their numbers]
  /// uint32.
  const array& page_array(PageGroup group = PageGroup::kAll) const;

  /// Slots of the states that rows begin with: [rows] uint32, any where there is none.
  const array& state_array() const;
  /// Which of them have one: [rows, 1] bool.
  const array& has_state_array() const;
  /// How many states are saved, then their slots, row by row: [1 + saves] uint32.
  const array& save_array() const;

 private:
  /// Where the keys and values of a group of layers lie.
  struct Paging {
    std::vector<kernels::AttentionRow> spans;
    std::vector<uint32_t> slots;
    std::vector<std::vector<uint32_t>> tables;  // of rows that do not list their first pages
    mutable std::optional<array> slot_array;
    mutable std::optional<array> page_array;
  };

  const Paging& paging(PageGroup group) const { return paging_[static_cast<size_t>(group)]; }
  Paging& paging(PageGroup group) { return paging_[static_cast<size_t>(group)]; }
  void add_row(const StepRow& row);
  void add_pages(const StepRow& row, PageGroup group);

  std::vector<StepRow> rows_;
  uint32_t page_tokens_;
  std::array<Paging, 2> paging_;
  std::vector<uint32_t> ids_;
  std::optional<array> id_array_;
  std::vector<uint32_t> positions_;
  std::vector<kernels::StateRow> state_rows_;
  std::vector<uint32_t> outputs_;
  std::vector<PooledTokens> pooled_;
  bool reuses_choices_ = false;
  mutable std::map<const Rope*, RopeTable> rope_tables_;
  mutable std::map<const Rope*, std::pair<array, array>> rope_arrays_;
  mutable std::optional<array> state_array_, has_state_array_, save_array_;
};

/// The pages that a row lists for a group, and the position that the first of them holds first.
const std::vector<uint32_t>& pages_of(const StepRow& row, PageGroup group);
uint32_t first_of(const StepRow& row, PageGroup group);

}  // namespace tandem::tensor
