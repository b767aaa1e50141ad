// Every request: those running and the last hundred, with phases and counts. No prompt, no text.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "chat/event.h"
#include "chat/service.h"
#include "protocol/json.h"

namespace tandem::protocol {

enum class Outcome : uint8_t { kRunning, kFinished, kFailed, kCancelled };
const char* name(Outcome outcome);

struct RequestRecord {
  std::string id;
  std::string endpoint;  // "chat" or "completions"
  std::string model;
  std::string client;  // a key's id, else the peer
  std::string peer;
  std::string side = {};  // what kind of side request, "asked" when by priority; else empty
  bool stream = false;
  uint32_t choices = 1;
  int64_t created = 0;  // Unix seconds

  uint32_t prompt_tokens = 0;
  uint32_t prefilled_tokens = 0;
  uint32_t cached_tokens = 0;
  uint32_t emitted_tokens = 0;  // of all choices; pieces of text while it runs
  uint32_t reasoning_tokens = 0;
  uint32_t broken_calls = 0;                   // see chat::End
  std::optional<chat::Divergence> divergence;  // from the prompts that were known
  std::vector<chat::Guard> guards = {};        // that acted, of all choices

  TimePoint submitted{};
  std::optional<TimePoint> started;  // prefill began
  std::optional<TimePoint> first_token;
  std::optional<TimePoint> ended;
  TimePoint last_event{};

  Outcome outcome = Outcome::kRunning;
  std::string finish_reason;  // or the code of the failure
  std::vector<bool> done;     // choices that had their last event
};

/// Thread-safe.
class RequestTable {
 public:
  /// Told about every request that ended.
  using OnEnd = std::function<void(const RequestRecord&)>;

  explicit RequestTable(const Clock& clock, OnEnd on_end = {});

  /// False when the id is in use.
  bool open(RequestRecord record);
  /// A request that was refused after open(): forgotten.
  void forget(const std::string& id);
  void accept(const std::string& id, const chat::Accepted& accepted);
  void note(const std::string& id, const chat::Event& event);

  std::optional<RequestRecord> find(const std::string& id) const;  // running or recent
  size_t running() const;

  /// For how long requests have been running without an event reaching this table; zero when none
  /// runs.
  Duration silence() const;

  /// {"active": […], "recent": […]}, the newest first.
  Json to_json() const;

 private:
  void end(std::map<std::string, RequestRecord>::iterator entry);

  static constexpr size_t kRecent = 100;

  const Clock& clock_;
  const OnEnd on_end_;
  mutable std::mutex mutex_;
  std::map<std::string, RequestRecord> running_;
  std::deque<RequestRecord> recent_;  // the newest first
  TimePoint last_event_{};
};

}  // namespace tandem::protocol
