// Requests with a grammar for tests: a constraint that counts, and can wait or break at a place.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/fake_runner.h"

namespace tandem::engine::constraints {

using namespace std::chrono_literals;
using Ids = std::vector<gen::TokenId>;

inline constexpr uint32_t kVocab = 256;
inline constexpr gen::TokenId kEnd = 7;

/// Closed until it is opened.
class Barrier {
 public:
  ~Barrier() { open(); }
  void open() {
    if (!std::exchange(is_open_, true)) opened_.set_value();
  }
  void wait() const { gate_.wait(); }

 private:
  bool is_open_ = false;
  std::promise<void> opened_;
  std::shared_future<void> gate_ = opened_.get_future().share();
};

/// The n-th token (from 0) is congruent to n modulo a number, `length` of them, then the end. The
/// source is "MODULUS LENGTH BREAKS WAITS": after so many tokens (-1: never) there is no mask, or
/// it comes once the barrier is opened; the last two may be left out.
class Counting final : public gen::Constraint {
 public:
  explicit Counting(const std::string& source, const Barrier* barrier = nullptr)
      : barrier_(barrier) {
    std::sscanf(source.c_str(), "%d %d %d %d", &modulus_, &length_, &breaks_at_, &waits_at_);
  }

  bool fits(gen::TokenId id, int place) const {
    return place == length_ ? id == kEnd : id % modulus_ == place % modulus_ && id != kEnd;
  }

  Status take(std::span<const gen::TokenId> tokens) override {
    for (const gen::TokenId id : tokens) {
      if (!fits(id, taken_++)) return Error{ErrorCode::kInvalid, "it does not fit", "grammar"};
    }
    return {};
  }

  Result<gen::TokenMask> allowed() override {
    if (taken_ == waits_at_ && barrier_ != nullptr) barrier_->wait();
    if (taken_ == breaks_at_) return Error{ErrorCode::kTooLarge, "it costs too much", "grammar"};
    gen::TokenMask mask(kVocab / 32);
    for (gen::TokenId id = 0; id < static_cast<int>(kVocab); ++id) {
      if (fits(id, taken_)) mask[static_cast<size_t>(id) / 32] |= 1U << (id % 32);
    }
    return mask;
  }

 private:
  int modulus_ = 1;
  int length_ = 0;
  int breaks_at_ = -1;
  int waits_at_ = -1;
  int taken_ = 0;
  const Barrier* const barrier_;
};

inline Result<std::unique_ptr<gen::Constraint>> counting(const gen::Grammar& grammar,
                                                         const Barrier& masks) {
  if (grammar.source == "bad") {
    return Error{ErrorCode::kInvalid, "there is no such grammar", "grammar"};
  }
  return std::unique_ptr<gen::Constraint>(std::make_unique<Counting>(grammar.source, &masks));
}

/// Makes them on a thread of its own, when it may.
class Factory final : public gen::ConstraintFactory {
 public:
  ~Factory() override {
    open();
    for (std::thread& thread : threads_) thread.join();
  }
  void make(const gen::Grammar& grammar, Made made) override {
    threads_.emplace_back([this, grammar, made = std::move(made)] {
      grammars_.wait();
      made(counting(grammar, masks));
    });
  }
  void open() { grammars_.open(); }

  Barrier masks;  // that of a constraint that waits

 private:
  Barrier grammars_;
  std::vector<std::thread> threads_;
};

struct Reader {
  std::promise<gen::Event> done;
  Ids ids;
  std::vector<gen::Token> tokens;

  gen::Sink sink() {
    return [this](gen::Event event) {
      if (const auto* drawn = std::get_if<gen::Tokens>(&event.body)) {
        for (const auto& token : drawn->tokens) ids.push_back(token.id), tokens.push_back(token);
      }
      if (event.is_last()) done.set_value(std::move(event));
    };
  }
  gen::Event wait() {
    auto future = done.get_future();
    REQUIRE(future.wait_for(20s) == std::future_status::ready);
    return future.get();
  }
};

/// An engine on its own thread.
struct World {
  explicit World(FakeOptions fake = {}, bool opens = true) : runner(fake) {
    if (opens) factory.open();
    engine.emplace(runner, EngineOptions{.constraints = &factory});
    std::promise<void> started;
    engine->reset(1, [&](const Status&) { started.set_value(); });
    started.get_future().get();
  }
  ~World() {
    factory.open();
    factory.masks.open();
    engine.reset();
  }

  FakeRunner runner;
  Factory factory;
  std::optional<Engine> engine;
};

inline gen::Request request(gen::RequestId id,
                            std::optional<std::string> source,
                            float temperature = 1) {
  gen::Request out{.id = id, .prompt = {static_cast<int>(id % 50) + 20, 3, 9}};
  out.sampling = {.temperature = temperature, .seed = 11 * id};
  out.max_tokens = 30;
  out.stop_ids = {kEnd};
  if (source) out.grammar = {.kind = gen::GrammarKind::kRegex, .source = *source};
  return out;
}

/// Drawn by the sampler from the fake's logits, without an engine.
inline Ids oracle(const gen::Request& request) {
  sample::Sampler sampler;
  Ids history = request.prompt;
  std::optional<Counting> bound;
  if (request.grammar) bound.emplace(request.grammar->source);
  while (history.size() < request.prompt.size() + request.max_tokens) {
    const auto logits = fake_logits(history, kVocab);
    gen::TokenMask mask;
    if (bound) mask = *bound->allowed();
    const auto token = sampler.draw({.logits = logits,
                                     .history = history,
                                     .sampling = request.sampling,
                                     .logprobs = request.logprobs,
                                     .allowed = mask});
    history.push_back(token->id);
    if (bound) REQUIRE(bound->take({&token->id, 1}));
    if (std::ranges::count(request.stop_ids, token->id) > 0) break;
  }
  return {history.begin() + static_cast<std::ptrdiff_t>(request.prompt.size()), history.end()};
}

}  // namespace tandem::engine::constraints
