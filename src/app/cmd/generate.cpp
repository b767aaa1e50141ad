// tandem generate: one answer on stdout.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <limits>
#include <mutex>

#include "app/command.h"
#include "app/session.h"

namespace tandem::app {
namespace {

using Seconds = std::chrono::duration<double>;

struct Options {
  SessionOptions session;
  std::string prompt;
  std::string system;
  bool raw = false;
  bool verbose = false;
  uint32_t max_tokens = 256;
  float temperature = 0;
  float top_p = 1;
  std::optional<uint64_t> seed;
};

/// Prints text as it comes and keeps the last event.
class Printer {
 public:
  void take(const chat::Event& event) {
    const std::lock_guard lock(mutex_);
    if (const auto* delta = std::get_if<chat::Delta>(&event.body)) {
      if (!first_) first_ = std::chrono::steady_clock::now();
      std::fputs(delta->text.c_str(), stdout);
      std::fflush(stdout);
    }
    if (event.is_last()) {
      last_ = event;
      ended_.notify_all();
    }
  }

  chat::Event wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return last_.has_value(); });
    return *last_;
  }

  std::chrono::steady_clock::time_point first_text() const {
    return first_.value_or(std::chrono::steady_clock::now());
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<chat::Event> last_;
  std::optional<std::chrono::steady_clock::time_point> first_;
};

chat::Request request_of(const Options& options, bool has_template) {
  chat::Request request;
  request.id = "generate";
  request.client = "local";
  request.max_tokens = options.max_tokens;
  request.sampling.temperature = options.temperature;
  request.sampling.top_p = options.top_p;
  request.seed = options.seed;
  if (options.raw || !has_template) {
    request.input = chat::RawPrompt{options.prompt};
    return request;
  }
  chat::Conversation conversation;
  if (!options.system.empty())
    conversation.messages.push_back({{"role", "system"}, {"content", options.system}});
  conversation.messages.push_back({{"role", "user"}, {"content", options.prompt}});
  request.input = std::move(conversation);
  return request;
}

void print_speed(const chat::Usage& usage, Seconds to_first, Seconds rest) {
  std::fprintf(stderr,
               "prompt: %u tokens, first text after %.3f s; answer: %u tokens, %.1f tok/s\n",
               usage.prompt_tokens, to_first.count(), usage.completion_tokens,
               rest.count() > 0 ? (usage.completion_tokens - 1) / rest.count() : 0.0);
}

int run(const Options& given) {
  Options options = given;
  if (options.prompt == "-") options.prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  const auto session = Session::start_ready(options.session);
  if (!session) return fail("generate", session.error().message);

  chat::Service& service = (*session)->service();
  const auto printer = std::make_shared<Printer>();  // shared with the service's thread
  const auto start = std::chrono::steady_clock::now();
  const auto accepted =
      service.submit(request_of(options, service.model().has_chat_template),
                     [printer](const chat::Event& event) { printer->take(event); });
  if (!accepted) return fail("generate", accepted.error().message);
  const chat::Event last = printer->wait();
  std::puts("");
  if (!flush_output())
    return fail("generate", "the answer could not be written to standard output");
  if (const auto* failed = std::get_if<chat::Failed>(&last.body))
    return fail("generate", failed->error.message);
  const Seconds to_first = printer->first_text() - start;
  const Seconds rest = std::chrono::steady_clock::now() - printer->first_text();
  if (options.verbose) print_speed(std::get<chat::End>(last.body).usage, to_first, rest);
  return 0;
}

void declare_options(CLI::App& app, Options& options) {
  declare(app, options.session);
  app.add_option("--prompt,-p", options.prompt, "Prompt; - reads it from stdin")->required();
  app.add_option("--system", options.system, "System prompt");
  app.add_flag("--raw", options.raw, "No chat template: continue the prompt as it is");
  app.add_option("--max-tokens,-m", options.max_tokens, "Longest answer")
      ->check(within(1, std::numeric_limits<uint32_t>::max()))
      ->capture_default_str();
  app.add_option("--temp", options.temperature, "Temperature")
      ->check(within(0, 100))
      ->capture_default_str();
  app.add_option("--top-p", options.top_p, "Nucleus")->check(within(0, 1))->capture_default_str();
  app.add_option("--seed", options.seed, "Seed [a fresh one]");
  app.add_flag("--verbose,-v", options.verbose, "Speed, to stderr");
}

}  // namespace

Command generate() {
  return {.name = "generate",
          .summary = "Print one answer",
          .declare = with_options(declare_options, run)};
}

}  // namespace tandem::app
