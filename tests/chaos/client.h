// Clients of a Generator: keeps what each request got and judges it.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "gen/generator.h"

namespace tandem::chaos {

/// Drops log lines while it lives: these tests cause much trouble on purpose.
struct Quiet {
  LogLevel before = log_level();
  Quiet() { set_log_level(static_cast<LogLevel>(9)); }
  ~Quiet() { set_log_level(before); }
};

/// What a request got so far.
struct Answer {
  std::vector<gen::TokenId> tokens;
  std::vector<gen::Event> last;
  uint32_t prefilled = 0;
  uint32_t after_last = 0;  // events that came too late

  bool is_finished() const {
    return last.size() == 1 && std::holds_alternative<gen::Finished>(last[0].body);
  }
  bool is_cancelled() const {
    return last.size() == 1 && std::holds_alternative<gen::Cancelled>(last[0].body);
  }
  /// Null when it did not fail.
  const Error* failure() const {
    if (last.size() != 1) return nullptr;
    const auto* failed = std::get_if<gen::Failed>(&last[0].body);
    return failed == nullptr ? nullptr : &failed->error;
  }
};

/// Thread-safe.
class Client {
 public:
  explicit Client(gen::Generator& generator) : generator_(generator) {}

  Status submit(gen::Request request) {
    const gen::RequestId id = request.id;
    return generator_.submit(std::move(request), [this, id](gen::Event event) {
      const std::lock_guard lock(mutex_);
      record(answers_[id], std::move(event));
      changed_.notify_all();
    });
  }

  /// True when the condition on all answers came true in time.
  template <class Condition>
  bool wait(Condition condition, Duration time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return condition(answers_); });
  }

  bool wait_all(size_t count, Duration time) {
    return wait(
        [count](const auto& answers) {
          size_t ended = 0;
          for (const auto& [id, answer] : answers) ended += answer.last.empty() ? 0 : 1;
          return ended >= count;
        },
        time);
  }

  bool wait_tokens(gen::RequestId id, size_t count, Duration time) {
    return wait([&](auto& answers) { return answers[id].tokens.size() >= count; }, time);
  }

  Answer answer(gen::RequestId id) {
    const std::lock_guard lock(mutex_);
    return answers_[id];
  }

 private:
  static void record(Answer& answer, gen::Event event) {
    if (!answer.last.empty()) ++answer.after_last;
    if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
      for (const gen::Token& token : tokens->tokens) answer.tokens.push_back(token.id);
    } else if (const auto* prefilled = std::get_if<gen::Prefilled>(&event.body)) {
      answer.prefilled = prefilled->done;
    }
    if (event.is_last()) answer.last.push_back(std::move(event));
  }

  gen::Generator& generator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<gen::RequestId, Answer> answers_;
};

}  // namespace tandem::chaos
