// A generator that follows a script: for tests of everything above the engine, and for servers
// without one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "gen/generator.h"

namespace tandem::gen {

/// What the fake does with one request.
struct FakeReply {
  std::vector<TokenId> tokens = {};  // drawn in this order; stop ids and max_tokens end it earlier
  FinishReason reason = FinishReason::kStop;  // when the tokens run out
  std::optional<Error> refusal = {};          // submit() returns it
  std::optional<Error> failure = {};          // the last event after the tokens
  bool hangs = false;                         // no last event after the tokens, until cancelled
  uint32_t cached_tokens = 0;
  size_t tokens_per_event = 1;
  std::chrono::milliseconds before_first{0};  // between submission and the first tokens
  std::chrono::milliseconds before_next{0};   // between tokens and those after them
  std::vector<float> embedding = {};          // of a request with pooling, in place of tokens
};

using FakeScript = std::function<FakeReply(const Request&)>;

/// Each request gets Started, Prefilled, its tokens and one last event; requests take turns, an
/// event each. Logprobs, when asked for: -0.5 for the drawn token, and for the n likeliest the
/// drawn id and those after it, each one less. Delays are kept only by a thread of its own.
/// Thread-safe.
class Fake final : public Generator {
 public:
  /// Delivers from a thread of its own, or only inside step().
  enum class Delivery : uint8_t { kOwnThread, kOnDemand };
  /// Whether submitted() and cancelled() know of what was.
  enum class Memory : uint8_t { kKeepsRequests, kForgets };

  Fake(Limits limits,
       FakeScript script,
       Delivery delivery = Delivery::kOwnThread,
       Memory memory = Memory::kKeepsRequests);
  ~Fake() override { stop(); }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  Status submit(Request request, Sink sink) override;
  void cancel(RequestId id) override;
  Limits limits() const override { return limits_; }

  /// Ends what still runs with Failed, and takes no more. From one thread.
  void stop();

  /// Delivers one event. False when no request has one. Not for Delivery::kOwnThread.
  bool step();

  /// Every request taken so far, in order.
  std::vector<Request> submitted() const;
  /// Ids given to cancel() so far, in order.
  std::vector<RequestId> cancelled() const;
  /// Requests without a last event.
  size_t running() const;

 private:
  struct Running;

  using Time = std::chrono::steady_clock::time_point;

  bool deliver_one(Time now);
  void run();

  const Limits limits_;
  const FakeScript script_;
  const Memory memory_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Running>> turns_;
  std::map<RequestId, std::shared_ptr<Running>> running_;
  std::vector<Request> submitted_;
  std::vector<RequestId> cancelled_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace tandem::gen
