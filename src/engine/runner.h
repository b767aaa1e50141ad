// Runner: executes StepPlans. Implemented by a model on this rank (runner/), by the lockstep of
// several ranks (cluster/) and by a fake without a model (engine/fake_runner.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "plan/step_plan.h"

namespace tandem::engine {

/// What a step gives back on the rank that samples (rank 0). Other ranks have no logits.
struct StepResult {
  uint64_t sequence = 0;
  /// [rows that want logits, vocab] float32, in the order of the plan's rows; valid until the next
  /// complete() or reset().
  std::span<const float> logits;
  /// [rows that draw], in the order of the plan's rows; -1 for a row without a usable logit. Valid
  /// as long.
  std::span<const plan::TokenId> drawn = {};
  /// [rows that pool, hidden] float32, in the order of the plan's rows. Valid as long.
  std::span<const float> pooled = {};
  /// Chained over all steps of the epoch: equal on every rank that executed the same plans
  /// (plan/state_hash.h).
  uint64_t state_hash = 0;
};

/// Sizes that the scheduler plans with.
struct RunnerInfo {
  uint32_t vocab = 0;
  uint32_t max_context = 0;  // tokens a request may have, prompt and answer
  uint32_t page_tokens = 0;  // positions a page holds
  uint32_t pages = 0;        // pages in the pool, equal on every rank
  /// Where layers see a window: the positions that the widest sees, itself included, and the pages
  /// in those layers' pool. At least what one row needs: positions of the window and a step.
  uint32_t window = 0;
  uint32_t window_pages = 0;
  /// Where layers have recurrent state: the slots in its pool, at least 2, and how many tokens lie
  /// between two of the states that are kept for prefixes, a multiple of the page.
  uint32_t state_slots = 0;
  uint32_t state_step = 0;
  /// Steps that may be in flight: above 1 for pipelines, and for devices that run while the host
  /// goes on.
  uint32_t depth = 1;
  /// Tokens of a step, at most: a runner whose parts work on several steps at once wants them
  /// shorter.
  uint32_t step_tokens = plan::kStepTokens;
  /// Rows may say how to draw (plan::Draw), and a row may go on with a token that is not known
  /// (plan::kDrawn): its request's row must draw in the step issued before it.
  bool draws = false;
  /// Layers choose blocks of keys: rows may say how old a choice may be (plan::IndexReuse).
  bool chooses_blocks = false;
  uint32_t hidden = 0;  // numbers in a hidden state
};

/// One engine thread calls everything but abort(). Calls alternate freely, but never more than
/// info().depth steps are issued and not completed.
class Runner {
 public:
  virtual ~Runner() = default;

  virtual RunnerInfo info() const = 0;

  /// Starts a step. Returns as soon as it may; errors: kPeerLost, kInvalid (plan does not fit),
  /// kInternal (then every issued step is void).
  virtual Status issue(const plan::StepPlan& plan) = 0;

  /// Finishes the oldest issued step. After an error (kPeerLost, kDeadline, kInternal, kCorrupt for
  /// a state hash mismatch) every issued step is void, and only reset() helps.
  virtual Result<StepResult> complete() = 0;

  /// Begins an epoch: drops issued steps and forgets every page's content. Sequence starts at 0.
  virtual Status reset(uint32_t epoch) = 0;

  /// Any thread: makes a blocked issue() or complete() return kPeerLost soon, and later ones at
  /// once, until reset().
  virtual void abort() = 0;
};

}  // namespace tandem::engine
