#include "grammar/compiler.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "grammar/matcher.h"
#include "grammar/source_limits.h"
#include "text/bridge.h"

namespace tandem::grammar {
namespace {

namespace bridge = text::bridge;

bridge::GrammarKind kind_of(gen::GrammarKind kind) {
  switch (kind) {
    case gen::GrammarKind::kJsonSchema:
      return bridge::GrammarKind::kJsonSchema;
    case gen::GrammarKind::kRegex:
      return bridge::GrammarKind::kRegex;
    case gen::GrammarKind::kLark:
      break;
  }
  return bridge::GrammarKind::kLark;
}

/// A vocabulary that grammars can be compiled for.
struct Loaded {
  bridge::GrammarHandle grammar;
  uint32_t logits = 0;
};

Result<Loaded> load_for(const LoadVocabulary& load) {
  auto vocabulary = load();
  if (!vocabulary) return vocabulary.error();
  const std::vector<uint32_t> eos(vocabulary->eos.begin(), vocabulary->eos.end());
  auto grammar = bridge::make_grammar(vocabulary->tokenizer->handle(), vocabulary->logits, eos);
  if (!grammar) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("this model's answers cannot be bound by a grammar: {}",
                             grammar.error().message),
                 "grammar"};
  }
  return Loaded{.grammar = *std::move(grammar), .logits = vocabulary->logits};
}

Error invalid(const std::string& why) {
  return {ErrorCode::kInvalid, fmt::format("the grammar cannot be used: {}", why), "grammar"};
}

}  // namespace

/// What the threads share, which no one waits for.
struct Compiler::Shared {
  Shared(LoadVocabulary how, CompilerOptions given) : load(std::move(how)), options(given) {}

  const LoadVocabulary load;
  const CompilerOptions options;

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex; `loaded` is set once.
  std::optional<Result<Loaded>> loaded = {};
  bool is_loading = false;
  std::deque<std::function<void()>> tasks = {};
  uint32_t running = 0;

  static void run(const std::shared_ptr<Shared>& shared, std::function<void()> task);
  const Result<Loaded>& vocabulary();
  Result<std::unique_ptr<gen::Constraint>> compile(const gen::Grammar& grammar);
};

void Compiler::Shared::run(const std::shared_ptr<Shared>& shared, std::function<void()> task) {
  const std::lock_guard lock(shared->mutex);
  shared->tasks.push_back(std::move(task));
  if (shared->running == shared->options.most_running) return;
  ++shared->running;
  std::thread([shared] {
    std::unique_lock held(shared->mutex);
    while (!shared->tasks.empty()) {
      {
        const auto next = std::move(shared->tasks.front());
        shared->tasks.pop_front();
        held.unlock();
        next();
      }
      held.lock();
    }
    --shared->running;
  }).detach();
}

/// Loads it, or waits for who does.
const Result<Loaded>& Compiler::Shared::vocabulary() {
  std::unique_lock lock(mutex);
  if (!std::exchange(is_loading, true)) {
    lock.unlock();
    auto made = load_for(load);
    lock.lock();
    loaded = std::move(made);
    changed.notify_all();
  }
  changed.wait(lock, [this] { return loaded.has_value(); });
  return *loaded;
}

Result<std::unique_ptr<gen::Constraint>> Compiler::Shared::compile(const gen::Grammar& grammar) {
  if (Status fits = check_source(grammar); !fits) return fits.error();
  const Result<Loaded>& words = vocabulary();
  if (!words) return words.error();
  auto handle = bridge::compile(*words->grammar, kind_of(grammar.kind), grammar.source);
  if (!handle) return invalid(handle.error().message);
  return std::unique_ptr<gen::Constraint>(
      std::make_unique<Matcher>(*std::move(handle), words->logits));
}

Compiler::Compiler(LoadVocabulary load, CompilerOptions options)
    : shared_(std::make_shared<Shared>(std::move(load), options)) {}

Compiler::~Compiler() {
  std::deque<std::function<void()>> dropped;  // ends without the lock
  const std::lock_guard lock(shared_->mutex);
  dropped.swap(shared_->tasks);
}

void Compiler::prepare() {
  Shared::run(shared_, [shared = shared_] { shared->vocabulary(); });
}

void Compiler::make(const gen::Grammar& grammar, Made made) {
  Shared::run(shared_, [shared = shared_, grammar, made = std::move(made)] {
    made(shared->compile(grammar));
  });
}

namespace {

/// One grammar that is checked, and who waits for it.
struct Check {
  std::mutex mutex;
  std::condition_variable changed;
  bool started = false;
  bool abandoned = false;  // nobody waits any more
  std::optional<Status> result = {};
};

Status outcome(Result<std::unique_ptr<gen::Constraint>> made) {
  if (!made) return made.error();
  const auto first = (*made)->allowed();
  if (!first) return Error{ErrorCode::kInvalid, first.error().message, "grammar"};
  return {};
}

}  // namespace

Status Compiler::check(const gen::Grammar& grammar) {
  if (Status fits = check_source(grammar); !fits) return fits;
  prepare();
  if (const auto& words = shared_->vocabulary(); !words) return words.error();
  const auto check = std::make_shared<Check>();
  Shared::run(shared_, [shared = shared_, check, grammar] {
    {
      const std::lock_guard lock(check->mutex);
      if (check->abandoned) return;
      check->started = true;
    }
    const Status result = outcome(shared->compile(grammar));
    const std::lock_guard lock(check->mutex);
    check->result = result;
    check->changed.notify_all();
  });
  std::unique_lock lock(check->mutex);
  check->changed.wait_for(lock, shared_->options.time, [&] { return check->result.has_value(); });
  if (check->result) return *check->result;
  check->abandoned = true;
  if (check->started) {
    return invalid(
        fmt::format("it takes longer than {} ms to prepare", shared_->options.time.count()));
  }
  return Error{ErrorCode::kBusy, "other grammars are being prepared", "grammar"};
}

}  // namespace tandem::grammar
