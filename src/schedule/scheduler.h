// Scheduler: decides what each step computes, and which pages hold it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "gen/request.h"
#include "plan/step_plan.h"
#include "schedule/prefix_index.h"
#include "schedule/sequence.h"
#include "schedule/sides.h"
#include "schedule/waiting_list.h"

namespace tandem::schedule {

struct SchedulerOptions {
  // What the runner has.
  uint32_t pages = 0;
  uint32_t page_tokens = 0;
  uint32_t max_context = 0;
  uint32_t window = 0;        // positions that layers with a window see; 0: there are none
  uint32_t window_pages = 0;  // in those layers' pool
  uint32_t state_slots = 0;   // of recurrent layers; 0: there are none
  uint32_t state_step = 0;    // tokens between two states that are kept
  uint32_t depth = 1;
  bool draws = false;  // tokens of requests that plan::draw_of() allows are drawn on the device

  // Policy.
  uint32_t max_rows = plan::kMostRows;       // requests that hold pages at once
  uint32_t step_tokens = plan::kStepTokens;  // of a step: decode rows, then prefill chunks
  uint32_t admit_answer_tokens = 512;        // reserved beyond the prompt, at most
  bool prefix_reuse = true;
  /// Reuse only what a cold run would compute with the same kernels: prompt positions, whole pages.
  /// For devices where the numeric classes differ in bits.
  bool strict_classes = false;
  std::chrono::milliseconds low_priority_patience{30'000};  // then a low request counts as normal
};

/// What the engine needs to know about a row of a plan, in the plan's order.
struct PlannedRow {
  gen::RequestId request = 0;
  uint64_t serial = 0;  // of the sequence: tells a later one with the same id apart
  bool wants_logits = false;
  bool draws = false;  // on the device
  bool pools = false;
  uint32_t start = 0;
  bool starts = false;         // its first row ever
  uint32_t cached_tokens = 0;  // prompt tokens reused, when it starts
  uint32_t prefilled = 0;      // prompt tokens computed after this row; 0 for a decode row
};

struct SchedulerCounts {
  uint32_t waiting = 0;  // never run yet
  uint32_t paused = 0;
  uint32_t running = 0;
  plan::PoolFigures pages = {};
  plan::PoolFigures window_pages = {};
  plan::PoolFigures states = {};
  // Since construction:
  uint64_t pauses = 0;
  uint64_t reused_tokens = 0;      // prompt tokens not computed again
  uint64_t computed_tokens = 0;    // positions planned
  uint64_t window_pages_left = 0;  // given up behind a request's window
};

/// Continuous batching over a paged pool. Every step: decode rows first, oldest first; then chunks
/// of prompts under the token budget, shared between clients in turn, short rests beside long ones.
/// Chunks end at absolute multiples of the page. A row whose token the host draws is not planned
/// again until the token is appended; one whose token the device draws goes on at once, up to the
/// limits that are known beforehand. Chunks of one prompt may be in flight together. When pages run
/// short the youngest row is paused: its pages stay reusable until evicted, and it resumes by
/// recomputing each position in its own numeric class. What two requests have in common is computed
/// once, also when both are running.
///
/// Layers that see a window have pages of their own: a sequence keeps those that its next row sees,
/// and reserves the most that it will need when it is admitted. Recurrent layers have a state of
/// fixed size, in a slot for each running sequence; every state_step tokens, before the prompt's
/// last page and at a sequence's end it is kept for others. A prefix is reusable up to the deepest
/// node where every kind of layer has what it needs.
///
/// A request with pooling has no answer: it waits after its prompt until it is removed. It takes
/// nothing of others, since a mean needs each position's hidden state, and leaves them nothing.
/// One thread.
class Scheduler {
 public:
  explicit Scheduler(SchedulerOptions options);

  /// The longest sequence that fits context and pool.
  uint32_t max_length() const { return max_length_; }

  /// Queues a request. Requires a prompt with room for an answer (prompt + emitted < max_length()),
  /// or one that fits where there is none (pooling), and an id that is not in use.
  Sequence& add(gen::Request request, TimePoint now);

  /// Ends a sequence: its pages stay reusable. Rows in flight are not awaited.
  void remove(gen::RequestId id);

  /// Null when unknown.
  Sequence* find(gen::RequestId id);

  /// The token of the oldest row in flight that samples, drawn by either side.
  void append(Sequence& sequence, TokenId token);

  /// The next step, or null when nothing can be planned now. The plan holds the page tables
  /// themselves and must go back through returned() before any other call. Epoch and sequence are
  /// the caller's to fill.
  plan::StepPlan* next(TimePoint now);
  const std::vector<PlannedRow>& rows() const { return planned_; }
  void returned();

  bool empty() const { return sequences_.empty(); }
  SchedulerCounts counts() const;

  /// free + cached + referenced == total, every running page table is referenced, and nothing is
  /// when no request lives. Linear in pages.
  bool is_consistent() const;

 private:
  /// What a row needs before it runs.
  struct Before {
    std::optional<plan::PageCopy> copy;
    std::optional<plan::PageCopy> window_copy;
  };
  struct Chosen {
    Sequence* sequence = nullptr;
    uint32_t start = 0;
    uint32_t count = 0;
    bool starts = false;
    bool samples = false;
    uint32_t reused = 0;  // prompt tokens reused before its first row
    Before before;
    std::optional<SlotId> state;         // before the row
    std::vector<plan::StateSave> saves;  // for others
  };

  void admit(TimePoint now);
  bool try_admit(Sequence& sequence);
  void choose_decode_rows();
  void choose_prefill_rows();
  std::vector<Sequence*> prefill_candidates();
  /// Plans up to `quota` tokens; returns how many.
  uint32_t choose_chunk(Sequence& sequence, uint32_t quota, bool at_least_a_page);
  uint32_t chunk_end(const Sequence& sequence, uint32_t quota, bool at_least_a_page) const;

  enum class Adoption { kDone, kPending };
  /// Full pages of the index that go on where a sequence's own end.
  struct Path {
    std::vector<PageId> pages;
    bool is_pending = false;  // another row of this step computes the next one
  };
  Path follow(const Sequence& sequence) const;
  void take(Sequence& sequence, std::span<const PageId> path);
  Adoption adopt(Sequence& sequence);
  Before adopt_part(Sequence& sequence);
  Before adopt_part_behind(Sequence& sequence, std::span<const PageId> path);
  bool reusable(const Sequence& sequence, uint32_t end) const;
  uint32_t shared_of(const gen::Request& request) const;

  bool may_evict_normal(const Sequence& sequence) const;
  bool ensure_page(Sequence& sequence);
  bool make_room(const Sequence& sequence);
  bool make_promised_room();
  bool is_youngest(const Sequence& sequence) const { return running_.back() == &sequence; }
  Chosen& row_of(const Sequence& sequence);
  void commit(Sequence& sequence, uint32_t count, Before before);
  void index_pages(Sequence& sequence);
  void pause(Sequence& sequence);
  void give_up_pages(Sequence& sequence, uint64_t ready);
  std::optional<PageId> leave(Place parent,
                              std::span<const TokenId> tokens,
                              PageId page,
                              uint64_t ready,
                              gen::Priority priority);
  size_t most_running() const;
  void attach(Sequence& sequence);
  void start_running(Sequence& sequence);
  void stop_running(Sequence& sequence);
  void keep_states(Sequence& sequence, uint32_t from);
  bool has_window_room(const Sequence& sequence) const;
  uint32_t reserved() const;
  uint32_t pages_for(uint32_t tokens) const;
  std::span<const TokenId> page_span(const Sequence& sequence, uint32_t page) const;
  void build();
  void add_row(Chosen& chosen);
  void add_planned(const Chosen& chosen);
  static std::optional<gen::Pooling> pooling_of(const Chosen& chosen);
  void end_choice();

  const SchedulerOptions options_;
  const uint32_t max_length_;
  PrefixIndex index_;
  Sides sides_;
  Clients clients_;
  WaitingList waiting_;
  std::unordered_map<gen::RequestId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;  // oldest first, low priority after the others

  uint64_t plan_number_ = 0;  // of the plan being built, else of the last one
  uint64_t orders_ = 0;
  uint64_t serials_ = 0;
  uint64_t turns_ = 0;
  std::optional<uint64_t> promised_room_;  // serial of a row that a younger one must make room for

  std::vector<Chosen> chosen_;
  std::vector<PageId> pinned_;  // sources of this plan's copies
  plan::StepPlan plan_;
  std::vector<plan::Row> spare_rows_;
  std::vector<PlannedRow> planned_;

  uint64_t pauses_ = 0;
  uint64_t reused_tokens_ = 0;
  uint64_t computed_tokens_ = 0;
};

}  // namespace tandem::schedule
