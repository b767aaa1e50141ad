// A rank without an engine, for tests of the head alone: says what its command line tells it to.
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "net/link.h"
#include "plan/frames.h"
#include "scripted_token.h"

namespace tandem::chaos {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> read_secret() {
  std::vector<std::byte> secret(4096);
  size_t size = 0;
  for (ssize_t got = 1; got > 0; size += static_cast<size_t>(std::max<ssize_t>(got, 0))) {
    got = ::read(3, secret.data() + size, secret.size() - size);
  }
  secret.resize(size);
  return secret;
}

class ScriptedRank {
 public:
  ScriptedRank(std::string script, uint32_t rank, std::unique_ptr<net::Link> link)
      : script_(std::move(script)), rank_(rank), link_(std::move(link)) {}

  [[noreturn]] void run(const std::string& instance, uint32_t size) {
    link_->start({.on_frame = [this](std::span<const std::byte> bytes) { receive(bytes); },
                  .on_closed = [](const Error&) { std::_Exit(9); }});
    plan::Hello hello;
    hello.instance = instance;
    hello.rank = rank_;
    hello.size = size;
    hello.pid = static_cast<uint64_t>(::getpid()) + (script_ == "wrong-pid" ? 1 : 0);
    hello.memory_bytes = 1 << 20;
    if (script_ == "garbage") {
      static_cast<void>(link_->send(std::vector<std::byte>(77)));
    } else {
      say(hello);
    }
    std::unique_lock lock(mutex_);
    for (uint64_t turn = 0;; ++turn) {
      if (turn % 250 == 0) say(plan::Beat{.epoch = epoch_, .steps = turn, .busy = false});
      changed_.wait_for(lock, 4ms);
      step();
    }
  }

 private:
  struct Running {
    gen::Request request;
    size_t place = 0;
  };

  void say(const plan::Frame& frame) {
    if (!link_->send(plan::encode(frame))) std::_Exit(8);
  }

  void receive(std::span<const std::byte> bytes) {
    const auto frame = plan::decode_frame(bytes);
    TANDEM_CHECK(frame.has_value(), "{}", frame.error().message);
    const std::lock_guard lock(mutex_);
    if (const auto* form = std::get_if<plan::Form>(&*frame)) {
      epoch_ = form->epoch;
      running_.clear();
      say(plan::Ready{.epoch = epoch_,
                      .limits = {.vocab = kScriptedVocab, .max_context = 4096},
                      .pages = 64,
                      .page_tokens = 16,
                      .depth = 1});
    } else if (const auto* submit = std::get_if<plan::Submit>(&*frame)) {
      Running& running = running_[submit->request.id];
      running = {.request = submit->request, .place = submit->request.emitted.size()};
      report(running, gen::Started{});
    } else if (const auto* cancel = std::get_if<plan::Cancel>(&*frame)) {
      const auto it = running_.find(cancel->request);
      if (it == running_.end()) return;
      report(it->second, gen::Cancelled{});
      running_.erase(it);
    } else if (const auto* abort = std::get_if<plan::Abort>(&*frame)) {
      running_.clear();
      if (script_ != "never-aborts") say(plan::Aborted{.epoch = abort->epoch});
    } else if (std::holds_alternative<plan::Shutdown>(*frame)) {
      std::_Exit(0);
    }
  }

  template <class Body>
  void report(const Running& running, Body body) {
    say(plan::Report{.epoch = epoch_, .events = {{.request = running.request.id, .body = body}}});
  }

  // One token for each request, and its end behind the last.
  void step() {
    for (auto it = running_.begin(); it != running_.end();) {
      Running& running = it->second;
      const gen::TokenId id = scripted_token(running.request.id, running.place++);
      if (script_ == "dies-at-token-5" && running.place == 5) std::_Exit(5);
      report(running, gen::Tokens{{{.id = id, .logprob = 0, .top = {}}}});
      const bool is_over = running.place >= running.request.max_tokens;
      if (is_over) report(running, gen::Finished{gen::FinishReason::kLength});
      it = is_over ? running_.erase(it) : std::next(it);
    }
  }

  const std::string script_;
  const uint32_t rank_;
  std::unique_ptr<net::Link> link_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t epoch_ = 0;                         // guarded by mutex_
  std::map<gen::RequestId, Running> running_;  // guarded by mutex_
};

int run(int count, char** words) {
  TANDEM_CHECK(count == 6, "usage: scripted_rank SCRIPT RANK SIZE HEAD INSTANCE");
  const std::string script = words[1];
  if (script == "exits-with-3") return 3;
  const auto rank = static_cast<uint32_t>(std::stoul(words[2]));
  auto link = net::connect_link(words[4], {.secret = read_secret()}, 5s);
  if (!link) return 7;
  ScriptedRank(script, rank, std::move(*link))
      .run(words[5], static_cast<uint32_t>(std::stoul(words[3])));
}

}  // namespace
}  // namespace tandem::chaos

int main(int count, char** words) { return tandem::chaos::run(count, words); }
