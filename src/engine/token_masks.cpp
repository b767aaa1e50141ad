#include "engine/token_masks.h"

#include <condition_variable>
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
  std::condition_variable changed;
  // Guarded by mutex.
  Result<gen::TokenMask> mask = gen::TokenMask();
  bool is_ready = true;
};

Result<TokenMasks::Prepared> TokenMasks::prepare(std::unique_ptr<gen::Constraint> constraint,
                                                 std::span<const gen::TokenId> emitted) {
  auto mask = advance(*constraint, emitted);
  if (!mask) return mask.error();
  return Prepared{.constraint = std::move(constraint), .mask = *std::move(mask)};
}

TokenMasks::TokenMasks(Prepared prepared, Workers& workers)
    : workers_(workers), state_(std::make_shared<State>()) {
  state_->constraint = std::move(prepared.constraint);
  state_->mask = std::move(prepared.mask);
}

Result<std::span<const uint32_t>> TokenMasks::next() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->is_ready; });
  if (!state_->mask) return state_->mask.error();
  return std::span<const uint32_t>(*state_->mask);
}

void TokenMasks::take(gen::TokenId token) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ready = false;
  }
  workers_.run([state = state_, token] {
    auto mask = advance(*state->constraint, {&token, 1});
    const std::lock_guard lock(state->mutex);
    state->mask = std::move(mask);
    state->is_ready = true;
    state->changed.notify_all();
  });
}

}  // namespace tandem::engine
