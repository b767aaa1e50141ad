// tandem bench: prefill and decode speed of a model on this machine, as llama-bench prints it.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <random>

#include "app/command.h"
#include "app/session.h"

namespace tandem::app {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Options {
  SessionOptions session;
  uint32_t prompt = 512;
  uint32_t generate = 128;
  uint32_t batch = 1;
  uint32_t repeats = 3;
};

/// When each of a batch's requests had its first and its last token.
class Timer {
 public:
  explicit Timer(size_t requests) : first_(requests), left_(requests) {}

  void take(size_t request, const gen::Event& event) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (std::holds_alternative<gen::Tokens>(event.body) && !first_[request]) first_[request] = now;
    if (!event.is_last()) return;
    if (const auto* failed = std::get_if<gen::Failed>(&event.body))
      problem_ = failed->error.message;
    last_ = now;
    if (--left_ == 0) ended_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return left_ == 0; });
  }

  Clock::time_point last_first() const {
    Clock::time_point latest{};
    for (const auto& time : first_) latest = std::max(latest, time.value_or(latest));
    return latest;
  }
  Clock::time_point last() const { return last_; }
  const std::string& problem() const { return problem_; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::optional<Clock::time_point>> first_;
  size_t left_;
  Clock::time_point last_{};
  std::string problem_;
};

struct Speed {
  double prefill = 0;  // prompt tokens a second, all requests together
  double decode = 0;   // answer tokens a second, all requests together
  double first_token = 0;
};

std::vector<gen::TokenId> random_prompt(uint32_t length, uint32_t vocab, std::mt19937& random) {
  std::vector<gen::TokenId> ids(length);
  for (gen::TokenId& id : ids) id = static_cast<gen::TokenId>(random() % vocab);
  return ids;
}

/// One batch of equal requests with fresh prompts, so that nothing is reused.
Result<Speed> measure(gen::Generator& generator,
                      const Options& options,
                      gen::RequestId& next_id,
                      std::mt19937& random) {
  const auto timer = std::make_shared<Timer>(options.batch);  // shared with the generator's thread
  const auto start = Clock::now();
  for (uint32_t i = 0; i < options.batch; ++i) {
    gen::Request request;
    request.id = next_id++;
    request.client = "bench";
    request.prompt = random_prompt(options.prompt, generator.limits().vocab, random);
    request.max_tokens = options.generate;
    request.ignore_eos = true;
    const Status taken = generator.submit(
        std::move(request), [timer, i](const gen::Event& event) { timer->take(i, event); });
    if (!taken) return taken.error();
  }
  timer->wait();
  if (!timer->problem().empty()) return Error{ErrorCode::kInternal, timer->problem()};
  const Seconds prefill = timer->last_first() - start;
  const Seconds decode = timer->last() - timer->last_first();
  return Speed{
      .prefill = options.batch * options.prompt / prefill.count(),
      .decode = options.generate < 2 ? 0 : options.batch * (options.generate - 1) / decode.count(),
      .first_token = prefill.count()};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print_row(const char* name, std::vector<double> values, const char* unit) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  std::printf("%-22s %10.2f %s (%.2f to %.2f)\n", name, median(values), unit, *low, *high);
}

int run(const Options& options) {
  const auto session = Session::start_ready(options.session);
  if (!session) return fail("bench", session.error().message);

  gen::RequestId next_id = 1;
  std::mt19937 random(1);
  std::vector<double> prefill;
  std::vector<double> decode;
  std::vector<double> first;
  for (uint32_t i = 0; i <= options.repeats; ++i) {  // the first one warms up
    const auto speed = measure((*session)->generator(), options, next_id, random);
    if (!speed) return fail("bench", speed.error().message);
    if (i == 0) continue;
    prefill.push_back(speed->prefill);
    decode.push_back(speed->decode);
    first.push_back(speed->first_token);
  }
  const size_t ranks = (*session)->generator().snapshot().ranks.size();
  std::printf("%s, %zu rank%s, %u requests of %u + %u tokens, median of %u (min to max)\n",
              (*session)->service().model().id.c_str(), ranks, ranks == 1 ? "" : "s", options.batch,
              options.prompt, options.generate, options.repeats);
  print_row("prefill", prefill, "tok/s");
  print_row("time to first token", first, "s");
  if (options.generate > 1) print_row("decode", decode, "tok/s");
  return 0;
}

void declare_options(CLI::App& app, Options& options) {
  declare(app, options.session);
  app.add_option("-p,--prompt-tokens", options.prompt, "Prompt tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("-g,--generate-tokens", options.generate, "Answer tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("-b,--batch", options.batch, "Requests at a time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("-n,--repeats", options.repeats, "Measured repeats after a warm-up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

}  // namespace

Command bench() {
  return {.name = "bench",
          .summary = "Measure prefill and decode speed",
          .declare = with_options(declare_options, run)};
}

}  // namespace tandem::app
