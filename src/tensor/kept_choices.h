// Choices of key blocks that later tokens of a request take again, instead of choosing.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor/step.h"

namespace tandem::tensor {

/// Choices that were kept, each under the page of the position that made it. A page belongs to one
/// request as long as that runs, so that nothing needs to be given back: what another left there is
/// of another position, or is overwritten before it is looked for.
template <class List>
class KeptLists {
 public:
  /// Null where the position's choice is not there.
  const List* find(uint32_t page, uint32_t position) const {
    const auto found = by_page_.find(page);
    const bool is_there = found != by_page_.end() && found->second.position == position;
    return is_there ? &found->second.list : nullptr;
  }

  void keep(uint32_t page, uint32_t position, List list) {
    by_page_.insert_or_assign(page, Kept{position, std::move(list)});
  }

  void clear() { by_page_.clear(); }

 private:
  struct Kept {
    uint32_t position;
    List list;
  };

  std::unordered_map<uint32_t, Kept> by_page_;
};

/// One layer's. Engine thread.
struct KeptChoices {
  KeptLists<std::vector<uint32_t>> on_host;  // fast path: [KV heads * top_k] block numbers each
  KeptLists<array> on_device;                // plain path: [1, KV heads, top_k]

  void clear() {
    on_host.clear();
    on_device.clear();
  }
};

/// One row's tokens as the rule of IndexReuse sees them.
class ReusingRow {
 public:
  /// Requires row.reuse; `block` and `top_k` as the choice's.
  ReusingRow(const StepRow& row, uint32_t page_tokens, uint32_t block, uint32_t top_k)
      : row_(row), page_tokens_(page_tokens), block_(block), top_k_(top_k) {}

  /// The position whose choice each token takes. Where the one that the rule names is in no earlier
  /// row that kept it, nor in this row, it is the token's own: it chooses.
  template <class List>
  std::vector<uint32_t> choosers(const KeptLists<List>& kept) const {
    std::vector<uint32_t> out(row_.tokens.size());
    for (uint32_t i = 0; i < out.size(); ++i) {
      const uint32_t own = row_.start + i, named = chooser(own);
      const bool is_there = named >= row_.start || kept.find(page(named), named) != nullptr;
      out[i] = is_there ? named : own;
    }
    return out;
  }

  /// Whether later tokens may take the choice of this position.
  bool keeps(uint32_t position) const {
    return sees_more(position) && chooser(position) == position;
  }

  uint32_t page(uint32_t position) const { return row_.pages[position / page_tokens_]; }

 private:
  /// Tokens that see no more than they may take make no choice.
  bool sees_more(uint32_t position) const { return position >= uint64_t{block_} * top_k_; }
  uint32_t chooser(uint32_t position) const {
    return sees_more(position) ? row_.reuse->chooser(position, block_) : position;
  }

  const StepRow& row_;
  uint32_t page_tokens_, block_, top_k_;
};

}  // namespace tandem::tensor
