// A Runner without a model: keeps token ids in fake pages and makes logits from what it reads back
// through the page tables, so that any mistake in paging, order or resume changes tokens.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/runner.h"
#include "plan/state_hash.h"
#include "sample/sampler.h"

namespace tandem::engine {

/// One position of a history: its token and the kernels that computed it.
struct FakePosition {
  plan::TokenId token = 0;
  plan::NumericClass numeric_class = plan::NumericClass::kChunk;
};

/// The oracle: logits [vocab] after `history`, a pure function of its tokens (and, by the second
/// form, of the class of each position).
std::vector<float> fake_logits(std::span<const plan::TokenId> history, uint32_t vocab = 256);
std::vector<float> fake_logits(std::span<const FakePosition> history, uint32_t vocab = 256);

/// What stands for the hidden state [hidden] of the last of these positions: a pure function of all
/// of them.
std::vector<float> fake_hidden(std::span<const FakePosition> history, uint32_t hidden);

/// What these positions add to a recurrent state.
uint64_t fake_state(uint64_t before, std::span<const FakePosition> positions);

/// How a FakeRunner ends its process when it meets die_at_token.
enum class FakeDeath { kAbort, kExit };

struct FakeOptions {
  uint32_t vocab = 256;
  uint32_t max_context = 4096;
  uint32_t page_tokens = 16;
  uint32_t pages = 1024;
  uint32_t window = 0;  // as RunnerInfo says
  uint32_t window_pages = 0;
  uint32_t state_slots = 0;
  uint32_t state_step = 0;
  uint32_t depth = 1;
  uint32_t step_tokens = plan::kStepTokens;
  bool draws = false;  // as a device that runs while the host goes on; wants a depth above 1
  bool chooses_blocks = false;  // rows may reuse choices; those that do read what they made alone
  uint32_t hidden = 8;
  std::chrono::microseconds step_delay{0};
  std::chrono::microseconds token_delay{0};  // added for each new token of a step
  bool classes_matter = false;               // logits depend on the numeric class of each position
  std::optional<plan::TokenId> die_at_token = {};  // the process ends when a row holds this token
  FakeDeath death = FakeDeath::kAbort;
  /// Called by complete() before a step finishes; may block. An error fails the step.
  std::function<Status(const plan::StepPlan&)> before_complete = {};
  /// Takes a step's delay instead of waiting for it: moves a ManualClock.
  std::function<void(Duration)> pass_time = {};
};

/// Executes plans at issue(), in order, and checks each (engine/check_plan.h). Works alone (then
/// with logits) and as the local runner of any rank.
class FakeRunner final : public Runner {
 public:
  explicit FakeRunner(FakeOptions options);

  RunnerInfo info() const override;
  Status issue(const plan::StepPlan& plan) override;
  Result<StepResult> complete() override;
  Status reset(uint32_t epoch) override;
  void abort() override;

  /// Steps completed and tokens executed since construction.
  uint64_t steps() const { return steps_; }
  uint64_t tokens() const { return tokens_; }
  /// What its fake pages take.
  uint64_t pool_bytes() const { return slots_.size() * sizeof(Slot); }

  /// Overwrites the token kept at a place of a page, as a defect would.
  void corrupt(plan::PageId page, uint32_t offset, plan::TokenId token);

 private:
  struct Slot {
    plan::TokenId token = -1;
    uint32_t position = 0;
    plan::RequestId request = 0;
    plan::NumericClass numeric_class = plan::NumericClass::kChunk;
  };

  struct Issued {
    plan::StepPlan plan;
    std::vector<float> logits;
    std::vector<plan::TokenId> drawn;
    std::vector<float> pooled;
    uint64_t state_hash = 0;
    TimePoint ready;
  };

  /// What a slot of recurrent state stands for: everything that was fed to it, in order.
  struct State {
    uint64_t absorbed = 0;
    uint32_t position = 0;
  };

  void run_row(plan::Row row, Issued& step);
  void write(std::vector<Slot>& slots, plan::PageId page, uint32_t position, const plan::Row& row);
  void copy_page(std::vector<Slot>& slots, const plan::PageCopy& copy) const;
  void advance_state(const plan::Row& row);
  bool sees_its_window(const plan::Row& row, std::span<const FakePosition> history) const;
  bool has_its_state(const plan::Row& row, std::span<const FakePosition> history) const;
  bool made_its_answer(const plan::Row& row) const;
  FakePosition read(const Slot& at, uint32_t position) const;
  std::vector<FakePosition> history_of(const plan::Row& row);
  void pool(const plan::Row& row, std::span<const FakePosition> history, Issued& step) const;
  plan::TokenId draw(const plan::Draw& draw, std::span<const FakePosition> history);
  void die_if_asked(const plan::StepPlan& plan) const;
  Duration delay(const plan::StepPlan& plan) const;
  bool wait_until(TimePoint ready);
  Slot& slot(plan::PageId page, uint32_t offset);

  const FakeOptions options_;
  std::vector<Slot> slots_;         // [pages, page_tokens]
  std::vector<Slot> window_slots_;  // [window_pages, page_tokens]
  std::vector<State> states_;       // [state_slots]
  std::deque<Issued> issued_;
  std::vector<float> logits_;                                      // of the last completed step
  std::vector<plan::TokenId> drawn_;                               // the same
  std::vector<float> pooled_;                                      // the same
  std::unordered_map<plan::RequestId, plan::TokenId> last_drawn_;  // by the step issued last
  sample::Sampler sampler_;
  uint32_t epoch_ = 0;
  uint64_t next_sequence_ = 0;
  plan::StateHash state_hash_;
  TimePoint busy_until_{};
  uint64_t steps_ = 0;
  uint64_t tokens_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool aborted_ = false;  // guarded by mutex_
};

}  // namespace tandem::engine
