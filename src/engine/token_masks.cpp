#include "engine/token_masks.h"

#include <mutex>
#include <utility>

namespace tandem::engine {
namespace {

Result<gen::TokenMask> advance(gen::Constraint& constraint, std::span<const gen::TokenId> tokens) {
  if (Status taken = constraint.take(tokens); !taken) return taken.error();
  auto mask = constraint.allowed();
  if (mask && mask->empty()) {
    return Error{ErrorCode::kInternal, "[engine] a grammar allows no token"};
  }
  return mask;
}

}  // namespace

struct TokenMasks::State {
  std::unique_ptr<gen::Constraint> constraint;  // the task's, while there is one

  std::mutex mutex;
  // Guarded by mutex.
  Result<gen::TokenMask> mask = gen::TokenMask();
  bool is_ready = true;
  bool is_dropped = false;
  std::function<void()> ready = {};  // who waits

  void make(gen::TokenId token);
};

/// Calls without the lock: who is called may ask for the mask.
void TokenMasks::State::make(gen::TokenId token) {
  {
    const std::lock_guard lock(mutex);
    if (is_dropped) return;
  }
  auto made = advance(*constraint, {&token, 1});
  std::function<void()> tell;
  {
    const std::lock_guard lock(mutex);
    mask = std::move(made);
    is_ready = true;
    tell = std::exchange(ready, {});
  }
  if (tell) tell();
}

Result<TokenMasks::Prepared> TokenMasks::prepare(std::unique_ptr<gen::Constraint> constraint,
                                                 std::span<const gen::TokenId> emitted) {
  auto mask = advance(*constraint, emitted);
  if (!mask) return mask.error();
  return Prepared{.constraint = std::move(constraint), .mask = *std::move(mask)};
}

TokenMasks::TokenMasks(Prepared prepared, Workers* workers)
    : workers_(workers), state_(std::make_shared<State>()) {
  state_->constraint = std::move(prepared.constraint);
  state_->mask = std::move(prepared.mask);
}

TokenMasks::~TokenMasks() {
  const std::lock_guard lock(state_->mutex);
  state_->is_dropped = true;
  state_->ready = {};
}

std::optional<TokenMasks::Mask> TokenMasks::next(std::function<void()> ready) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_ready) {
    state_->ready = std::move(ready);
    return std::nullopt;
  }
  if (!state_->mask) return state_->mask.error();
  return std::span<const uint32_t>(*state_->mask);
}

void TokenMasks::take(gen::TokenId token) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ready = false;
  }
  if (workers_ == nullptr) return state_->make(token);
  workers_->run([state = state_, token] { state->make(token); });
}

}  // namespace tandem::engine
