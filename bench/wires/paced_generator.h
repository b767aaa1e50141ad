// A generator without a model: every running request gets one token a step, at a fixed pace.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "gen/generator.h"

namespace tandem::bench {

inline int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// When the first token of each stream was drawn, by the request's seed; shared with the process
/// that reads the streams.
struct FirstTokens {
  static constexpr size_t kMost = 256;
  std::array<std::atomic<int64_t>, kMost> at_ns{};

  static FirstTokens& make_shared() {
    void* place = ::mmap(nullptr, sizeof(FirstTokens), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TANDEM_CHECK(place != MAP_FAILED, "no shared memory");
    return *new (place) FirstTokens;
  }
};

/// Answers are the script, over and over, until max_tokens. Steps begin when `streams` requests
/// run.
class PacedGenerator final : public gen::Generator {
 public:
  PacedGenerator(std::vector<gen::TokenId> script,
                 gen::Limits limits,
                 size_t streams,
                 std::chrono::nanoseconds step,
                 FirstTokens& first)
      : script_(std::move(script)), limits_(limits), streams_(streams), step_(step), first_(first) {
    thread_ = std::thread([this] { run(); });
  }

  ~PacedGenerator() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Status submit(gen::Request request, gen::Sink sink) override {
    const std::lock_guard lock(mutex_);
    running_[request.id] = {
        .seed = request.sampling.seed, .left = request.max_tokens, .sink = std::move(sink)};
    changed_.notify_all();
    return {};
  }

  void cancel(gen::RequestId id) override {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(id);
    if (found != running_.end()) found->second.left = 0;
  }

  gen::Limits limits() const override { return limits_; }

  uint64_t steps() const { return steps_; }

 private:
  struct Running {
    uint64_t seed = 0;
    uint32_t left = 0;
    size_t at = 0;
    gen::Sink sink;
  };

  void run() {
    while (wait_for_streams()) {
      // Headers are on their way before the first token.
      auto next = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
      while (step(next)) next += step_;
    }
  }

  bool wait_for_streams() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ending_ || running_.size() >= streams_; });
    return !ending_;
  }

  /// False when nothing runs any more.
  bool step(std::chrono::steady_clock::time_point when) {
    std::this_thread::sleep_until(when);
    std::unique_lock lock(mutex_);
    if (ending_ || running_.empty()) return false;
    ++steps_;
    for (auto entry = running_.begin(); entry != running_.end();) {
      Running& stream = entry->second;
      const gen::RequestId id = entry->first;
      if (stream.left == 0) {
        stream.sink({id, gen::Finished{gen::FinishReason::kLength}});
        entry = running_.erase(entry);
        continue;
      }
      if (stream.at == 0) first_.at_ns[stream.seed % FirstTokens::kMost] = now_ns();
      stream.sink({id, gen::Tokens{{gen::Token{.id = script_[stream.at++ % script_.size()]}}}});
      --stream.left;
      ++entry;
    }
    return true;
  }

  const std::vector<gen::TokenId> script_;
  const gen::Limits limits_;
  const size_t streams_;
  const std::chrono::nanoseconds step_;
  FirstTokens& first_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<gen::RequestId, Running> running_;
  bool ending_ = false;
  std::atomic<uint64_t> steps_ = 0;
  std::thread thread_;
};

}  // namespace tandem::bench
