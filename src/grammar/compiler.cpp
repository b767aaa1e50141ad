#include "grammar/compiler.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
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

Result<std::unique_ptr<gen::Constraint>> Compiler::Shared::compile(const gen::Grammar& grammar) {
  const Result<Loaded>& words = vocabulary();
  if (!words) return words.error();
  auto handle = kept.copy(grammar);
  if (!handle) {
    if (Status fits = check_source(grammar); !fits) return fits.error();
    handle = bridge::compile(*words->grammar, kind_of(grammar.kind), grammar.source);
    if (!handle) return unusable(handle.error().message);
    kept.keep(grammar, **handle);
  }
  return std::unique_ptr<gen::Constraint>(
      std::make_unique<Matcher>(*std::move(handle), words->logits));
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
struct Check {
  std::mutex mutex;
  std::condition_variable changed;
  bool started = false;
  bool abandoned = false;  // nobody waits any more
  std::optional<Status> result = {};

  bool is_abandoned() {
    const std::lock_guard lock(mutex);
    return abandoned;
  }
};

/// Any id that the mask allows but these, by a number; nothing when there is none.
std::optional<gen::TokenId> choose(const gen::TokenMask& mask,
                                   const std::vector<gen::TokenId>& but,
                                   uint32_t number) {
  std::vector<gen::TokenId> ids;
  for (size_t word = 0; word < mask.size(); ++word) {
    for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      const auto id = static_cast<gen::TokenId>(word * 32 + std::countr_zero(bits));
      if (std::ranges::find(but, id) == but.end()) ids.push_back(id);
    }
  }
  if (ids.empty()) return std::nullopt;
  return ids[number % ids.size()];
}

/// The beginning of some answer: bounds of the matcher's work that show only once it takes tokens,
/// as too many alternatives do, should not be met first in the middle of one.
Status outcome(Result<std::unique_ptr<gen::Constraint>> made,
               const std::vector<gen::TokenId>& eos,
               Check& check) {
  constexpr uint32_t kTokens = 24;
  if (!made) return made.error();
  gen::Constraint& constraint = **made;
  auto mask = constraint.allowed();
  uint32_t number = 2463534242;
  for (uint32_t taken = 0; mask && taken < kTokens && !check.is_abandoned(); ++taken) {
    number = number * 1664525 + 1013904223;
    const auto id = choose(*mask, eos, number >> 8);
    if (!id) return {};
    if (Status fits = constraint.take({&*id, 1}); !fits) {
      mask = fits.error();
    } else {
      mask = constraint.allowed();
    }
  }
  if (mask) return {};
  Error error = mask.error();
  error.code = ErrorCode::kInvalid;
  return error;
}

}  // namespace

Status Compiler::check(const gen::Grammar& grammar) {
  if (shared_->kept.is_checked(grammar)) return {};
  if (Status fits = check_source(grammar); !fits) return fits;
  prepare();
  if (const auto& words = shared_->vocabulary(); !words) return words.error();
  const auto check = std::make_shared<Check>();
  const Status taken = Shared::run(shared_, [shared = shared_, check, grammar] {
    {
      const std::lock_guard lock(check->mutex);
      if (check->abandoned) return;
      check->started = true;
    }
    const Status result = outcome(shared->compile(grammar), shared->vocabulary()->eos, *check);
    if (result && !check->is_abandoned()) shared->kept.set_checked(grammar);
    const std::lock_guard lock(check->mutex);
    check->result = result;
    check->changed.notify_all();
  });
  if (!taken) return taken.error();
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
