#include "gen/fake.h"

#include <algorithm>
#include <utility>

namespace tandem::gen {

struct Fake::Running {
  enum class Phase : uint8_t { kStart, kPrefill, kTokens, kEmbedding, kEnd, kIdle };

  Request request;
  Sink sink;
  FakeReply reply;
  Phase phase = Phase::kStart;
  size_t next = 0;
  FinishReason reason = FinishReason::kStop;
  bool cancelled = false;
  Time due = {};  // of the next event

  /// When the next event is to be delivered; never: Time::max().
  Time next_event() const {
    if (cancelled) return {};
    return phase == Phase::kIdle ? Time::max() : due;
  }

  Event make_event() {
    if (cancelled) return {request.id, Cancelled{}};
    if (phase == Phase::kStart) {
      phase = Phase::kPrefill;
      return {request.id, Started{reply.cached_tokens}};
    }
    const auto total = static_cast<uint32_t>(request.prompt.size());
    if (phase == Phase::kPrefill) {
      next = request.emitted.size();
      phase = request.pooling              ? Phase::kEmbedding
              : next < reply.tokens.size() ? Phase::kTokens
                                           : after_tokens();
      due += reply.before_first;
      return {request.id, Prefilled{total, total}};
    }
    if (phase == Phase::kTokens) return {request.id, draw()};
    if (phase == Phase::kEmbedding) {
      phase = after_tokens();
      return {request.id, Embedding{reply.embedding}};
    }
    if (reply.failure) return {request.id, Failed{*reply.failure}};
    return {request.id, Finished{reason}};
  }

 private:
  Phase after_tokens() {
    reason = reply.reason;
    return reply.hangs ? Phase::kIdle : Phase::kEnd;
  }

  Tokens draw() {
    Tokens tokens;
    while (phase == Phase::kTokens &&
           tokens.tokens.size() < std::max<size_t>(1, reply.tokens_per_event)) {
      const TokenId id = reply.tokens[next++];
      tokens.tokens.push_back(make_token(id));
      const bool stops = !request.ignore_eos && next > request.min_tokens &&
                         std::ranges::find(request.stop_ids, id) != request.stop_ids.end();
      if (stops || next >= request.max_tokens) {
        reason = stops ? FinishReason::kStop : FinishReason::kLength;
        phase = Phase::kEnd;
      } else if (next == reply.tokens.size()) {
        phase = after_tokens();
      }
    }
    if (phase == Phase::kTokens) due = std::chrono::steady_clock::now() + reply.before_next;
    return tokens;
  }

  Token make_token(TokenId id) const {
    Token token{.id = id};
    if (!request.logprobs) return token;
    token.logprob = -0.5F;
    for (uint32_t i = 0; i < *request.logprobs; ++i) {
      token.top.push_back({id + static_cast<TokenId>(i), -0.5F - static_cast<float>(i)});
    }
    return token;
  }
};

Fake::Fake(Limits limits, FakeScript script, Delivery delivery, Memory memory)
    : limits_(limits), script_(std::move(script)), memory_(memory) {
  if (delivery == Delivery::kOwnThread) thread_ = std::thread([this] { run(); });
}

void Fake::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::map<RequestId, std::shared_ptr<Running>> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(running_);
    turns_.clear();
  }
  for (const auto& [id, running] : left) {
    running->sink(
        {id, Failed{{.code = ErrorCode::kUnavailable, .message = "the server was stopped"}}});
  }
}

Status Fake::submit(Request request, Sink sink) {
  FakeReply reply = script_(request);
  if (reply.refusal) return *reply.refusal;
  const std::lock_guard lock(mutex_);
  if (stopping_) return Error{.code = ErrorCode::kUnavailable, .message = "the server was stopped"};
  if (running_.contains(request.id)) {
    return Error{.code = ErrorCode::kConflict, .message = "a request with this id runs"};
  }
  const size_t room = request.pooling ? 0 : 1;
  if (request.prompt.size() + room > limits_.max_context) {
    return Error{.code = ErrorCode::kTooLarge, .message = "the prompt fills the context"};
  }
  if (memory_ == Memory::kKeepsRequests) submitted_.push_back(request);
  auto running = std::make_shared<Running>();
  running->request = std::move(request);
  running->sink = std::move(sink);
  running->reply = std::move(reply);
  running->due = std::chrono::steady_clock::now();
  running_[running->request.id] = running;
  turns_.push_back(std::move(running));
  changed_.notify_all();
  return {};
}

void Fake::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  if (memory_ == Memory::kKeepsRequests) cancelled_.push_back(id);
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  found->second->cancelled = true;
  changed_.notify_all();
}

bool Fake::step() {
  // Later than anything is due, earlier than never.
  return deliver_one(Time::max() - std::chrono::nanoseconds(1));
}

bool Fake::deliver_one(Time now) {
  std::shared_ptr<Running> turn;
  Event event;
  {
    const std::lock_guard lock(mutex_);
    const auto ready = std::ranges::find_if(
        turns_, [now](const auto& running) { return running->next_event() <= now; });
    if (ready == turns_.end()) return false;
    turn = *ready;
    turns_.erase(ready);
    event = turn->make_event();
    if (event.is_last()) {
      running_.erase(turn->request.id);
    } else {
      turns_.push_back(turn);
    }
  }
  turn->sink(std::move(event));
  return true;
}

void Fake::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (stopping_) return;
      Time next = Time::max();
      for (const auto& running : turns_) next = std::min(next, running->next_event());
      if (next == Time::max()) {
        changed_.wait(lock);
        continue;
      }
      if (next > std::chrono::steady_clock::now()) {
        changed_.wait_until(lock, next);
        continue;
      }
    }
    deliver_one(std::chrono::steady_clock::now());
  }
}

std::vector<Request> Fake::submitted() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

std::vector<RequestId> Fake::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

size_t Fake::running() const {
  const std::lock_guard lock(mutex_);
  return running_.size();
}

}  // namespace tandem::gen
