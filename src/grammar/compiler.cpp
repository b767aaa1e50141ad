#include "grammar/compiler.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "grammar/kept_matchers.h"
#include "grammar/matcher.h"
#include "grammar/matcher_errors.h"
#include "grammar/source_limits.h"
#include "grammar/trial.h"
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
      return bridge::GrammarKind::kLark;
    case gen::GrammarKind::kAmbiguousLark:
      break;
  }
  return bridge::GrammarKind::kAmbiguousLark;
}

Error no_thread(const char* why) {
  return {ErrorCode::kBusy, fmt::format("no thread can be had for grammars: {}", why), "grammar"};
}

/// A vocabulary that grammars can be compiled for.
struct Loaded {
  bridge::GrammarHandle grammar;
  uint32_t logits = 0;
  std::vector<text::TokenId> eos;
};

Result<Loaded> load_unsafely(const LoadVocabulary& load) {
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
  return Loaded{.grammar = *std::move(grammar),
                .logits = vocabulary->logits,
                .eos = std::move(vocabulary->eos)};
}

/// Never throws: others wait for what comes of it.
Result<Loaded> load_for(const LoadVocabulary& load) {
  try {
    return load_unsafely(load);
  } catch (const std::exception& thrown) {
    return Error{ErrorCode::kInternal,
                 fmt::format("the vocabulary cannot be loaded for grammars: {}", thrown.what()),
                 "grammar"};
  }
}

/// A refusal of the client's grammar, whatever bound it is over.
Error unusable(std::string_view why) {
  Error error = matcher_error(why);
  error.code = ErrorCode::kInvalid;
  return error;
}

Error invalid(const std::string& why) {
  return {ErrorCode::kInvalid, fmt::format("the grammar cannot be used: {}", why), "grammar"};
}

}  // namespace

/// What the threads share, which no one waits for.
struct Compiler::Shared {
  Shared(LoadVocabulary how, CompilerOptions given)
      : load(std::move(how)), options(std::move(given)) {}

  const LoadVocabulary load;
  const CompilerOptions options;
  KeptMatchers kept;

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex; `loaded` is set once.
  std::optional<Result<Loaded>> loaded = {};
  bool is_loading = false;
  std::deque<std::function<void()>> tasks = {};
  uint32_t running = 0;

  static Status run(const std::shared_ptr<Shared>& shared, std::function<void()> task);
  static void work(const std::shared_ptr<Shared>& shared);
  const Result<Loaded>& vocabulary();
  Result<bridge::MatcherHandle> matcher(const gen::Grammar& grammar);
  Result<std::unique_ptr<gen::Constraint>> compile(const gen::Grammar& grammar);
};

/// kBusy, and the task is dropped, when no thread runs and none can be had.
Status Compiler::Shared::run(const std::shared_ptr<Shared>& shared, std::function<void()> task) {
  const std::lock_guard lock(shared->mutex);
  shared->tasks.push_back(std::move(task));
  if (shared->running == shared->options.most_running) return {};
  try {
    shared->options.start([shared] { work(shared); });
  } catch (const std::exception& thrown) {
    if (shared->running > 0) return {};  // those that run will come to it
    shared->tasks.pop_back();
    return no_thread(thrown.what());
  }
  ++shared->running;  // which the thread takes back once it gets the lock
  return {};
}

void Compiler::Shared::work(const std::shared_ptr<Shared>& shared) {
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

/// At its beginning, one answer's own.
Result<bridge::MatcherHandle> Compiler::Shared::matcher(const gen::Grammar& grammar) {
  const Result<Loaded>& words = vocabulary();
  if (!words) return words.error();
  auto handle = kept.copy(grammar);
  if (handle) return handle;
  if (Status fits = check_source(grammar); !fits) return fits.error();
  handle = bridge::compile(*words->grammar, kind_of(grammar.kind), grammar.source);
  if (!handle) return unusable(handle.error().message);
  kept.keep(grammar, **handle);
  return handle;
}

Result<std::unique_ptr<gen::Constraint>> Compiler::Shared::compile(const gen::Grammar& grammar) {
  auto handle = matcher(grammar);
  if (!handle) return handle.error();
  return std::unique_ptr<gen::Constraint>(
      std::make_unique<Matcher>(*std::move(handle), vocabulary()->logits));
}

/// Compiling recurses as deep as SchemaLimits and check_lark allow, at up to 16 KiB a level; of the
/// stack only what is used takes memory.
void start_thread(std::function<void()> task) {
  constexpr size_t kStackBytes = size_t{256} << 20;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto owned = std::make_unique<std::function<void()>>(std::move(task));
  pthread_t thread = 0;
  const int error = ::pthread_create(
      &thread, &attributes,
      [](void* given) -> void* {
        const std::unique_ptr<std::function<void()>> run(
            static_cast<std::function<void()>*>(given));
        (*run)();
        return nullptr;
      },
      owned.get());
  ::pthread_attr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category());
  static_cast<void>(owned.release());  // the thread's
}

Compiler::Compiler(LoadVocabulary load, CompilerOptions options)
    : shared_(std::make_shared<Shared>(std::move(load), std::move(options))) {}

Compiler::~Compiler() {
  std::deque<std::function<void()>> dropped;  // ends without the lock
  const std::lock_guard lock(shared_->mutex);
  dropped.swap(shared_->tasks);
}

void Compiler::prepare() {
  // Where no thread can be had, the first grammar loads it.
  static_cast<void>(Shared::run(shared_, [shared = shared_] { shared->vocabulary(); }));
}

void Compiler::make(const gen::Grammar& grammar, Made made) {
  const auto tell = std::make_shared<Made>(std::move(made));
  const Status taken = Shared::run(
      shared_, [shared = shared_, grammar, tell] { (*tell)(shared->compile(grammar)); });
  if (!taken) (*tell)(taken.error());
}

namespace {

/// One grammar that is checked, and who waits for it.
class Check {
 public:
  /// False when nobody waits any more.
  bool start() {
    const std::lock_guard lock(mutex_);
    return is_started_ = !is_abandoned_;
  }

  bool is_abandoned() {
    const std::lock_guard lock(mutex_);
    return is_abandoned_;
  }

  void end(Status result) {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    changed_.notify_all();
  }

  /// Waits for what is left of the time that a request has in all.
  Status wait(Compiler::Duration left, Compiler::Duration in_all) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, left, [this] { return result_.has_value(); });
    if (result_) return *result_;
    is_abandoned_ = true;
    if (is_started_) {
      const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(in_all);
      return invalid(fmt::format("it takes longer than {} ms to prepare", most.count()));
    }
    return Error{ErrorCode::kBusy, "other grammars are being prepared", "grammar"};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool is_started_ = false;
  bool is_abandoned_ = false;
  std::optional<Status> result_ = {};
};

/// Walks of the trial may take half of the time that there is, so that what is costly to read is
/// told from what is slow to compile.
Trial trial_of(gen::GrammarKind kind,
               const Loaded& words,
               std::shared_ptr<Check> check,
               Compiler::Duration left) {
  const auto end = std::chrono::steady_clock::now() + left / 2;
  return {.logits = words.logits,
          .eos = words.eos,
          .is_ambiguous = kind == gen::GrammarKind::kAmbiguousLark,
          .is_over = [check = std::move(check), end] {
            return check->is_abandoned() || std::chrono::steady_clock::now() >= end;
          }};
}

}  // namespace

Compiler::Duration Compiler::time() const { return shared_->options.time; }

Status Compiler::check(const gen::Grammar& grammar) {
  Duration left = time();
  return check(grammar, left);
}

Status Compiler::check(const gen::Grammar& grammar, Duration& left) {
  if (shared_->kept.is_checked(grammar)) return {};
  if (Status fits = check_source(grammar); !fits) return fits;
  prepare();
  if (const auto& words = shared_->vocabulary(); !words) return words.error();
  const auto start = std::chrono::steady_clock::now();
  const auto check = std::make_shared<Check>();
  const Status taken = Shared::run(shared_, [shared = shared_, check, grammar, left] {
    if (!check->start()) return;
    const auto made = shared->matcher(grammar);
    check->end(
        made ? try_beginnings(**made, trial_of(grammar.kind, *shared->vocabulary(), check, left))
             : Status(made.error()));
  });
  if (!taken) return taken.error();
  Status result = check->wait(left, time());
  left -= std::min(left, Duration(std::chrono::steady_clock::now() - start));
  if (result) shared_->kept.set_checked(grammar);
  return result;
}

}  // namespace tandem::grammar
