#include "protocol/request_table.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <variant>

#include "protocol/answer.h"
#include "protocol/errors.h"

namespace tandem::protocol {
namespace {

double milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

Json phase_ms(const std::optional<TimePoint>& from, const std::optional<TimePoint>& to) {
  if (!from || !to) return nullptr;
  return std::round(milliseconds(*to - *from) * 1000) / 1000;
}

const char* phase(const RequestRecord& record) {
  if (record.ended) return "done";
  if (record.first_token) return "decode";
  return record.started ? "prefill" : "queue";
}

Json to_json(const std::optional<chat::Divergence>& divergence) {
  if (!divergence) return nullptr;
  return {{"message", divergence->message},
          {"role", divergence->role},
          {"reusable_tokens", divergence->reusable_tokens},
          {"known_tokens", divergence->known_tokens}};
}

Json to_json(const RequestRecord& record, TimePoint now) {
  const TimePoint end = record.ended.value_or(now);
  const auto or_end = [&](const std::optional<TimePoint>& time) { return time.value_or(end); };
  Json out;
  out["id"] = record.id;
  out["endpoint"] = record.endpoint;
  out["model"] = record.model;
  out["client"] = record.client;
  out["peer"] = record.peer;
  out["side"] = record.side.empty() ? Json(nullptr) : Json(record.side);
  out["stream"] = record.stream;
  out["n"] = record.choices;
  out["created"] = record.created;
  out["phase"] = phase(record);
  out["outcome"] = name(record.outcome);
  out["finish_reason"] = record.finish_reason.empty() ? Json(nullptr) : Json(record.finish_reason);
  out["prompt_tokens"] = record.prompt_tokens;
  out["prefilled_tokens"] = record.prefilled_tokens;
  out["cached_tokens"] = record.cached_tokens;
  out["emitted_tokens"] = record.emitted_tokens;
  out["reasoning_tokens"] = record.reasoning_tokens;
  out["guards"] = Json::array();
  for (const chat::Guard guard : record.guards) out["guards"].push_back(name(guard));
  out["divergence"] = to_json(record.divergence);
  out["elapsed_ms"] = phase_ms(record.submitted, end);
  out["queue_ms"] = phase_ms(record.submitted, or_end(record.started));
  out["prefill_ms"] =
      record.started ? phase_ms(record.started, or_end(record.first_token)) : Json(nullptr);
  out["first_token_ms"] = phase_ms(record.submitted, record.first_token);
  out["decode_ms"] = record.first_token ? phase_ms(record.first_token, end) : Json(nullptr);
  return out;
}

void count_usage(RequestRecord& record, const chat::Usage& usage, bool first) {
  if (usage.prompt_tokens > 0) record.prompt_tokens = usage.prompt_tokens;
  record.cached_tokens =
      first ? usage.cached_tokens : std::min(record.cached_tokens, usage.cached_tokens);
  record.emitted_tokens += usage.completion_tokens;
  record.reasoning_tokens += usage.reasoning_tokens;
}

void note_progress(RequestRecord& record, const chat::Event& event, TimePoint now) {
  record.last_event = now;
  if (!record.started) record.started = now;
  if (const auto* progress = std::get_if<chat::Progress>(&event.body)) {
    record.prefilled_tokens = std::max(record.prefilled_tokens, progress->done);
    return;
  }
  if (!record.first_token) record.first_token = now;
  ++record.emitted_tokens;
}

void note_end(RequestRecord& record, const chat::End& end) {
  record.broken_calls += end.broken_calls;
  record.guards.insert(record.guards.end(), end.guards.begin(), end.guards.end());
  if (record.outcome == Outcome::kRunning) record.finish_reason = name(end.reason);
}

void note_failure(RequestRecord& record, const Error& error) {
  if (record.outcome == Outcome::kFailed) return;
  const bool cancelled = error.code == ErrorCode::kCancelled;
  record.outcome = cancelled ? Outcome::kCancelled : Outcome::kFailed;
  record.finish_reason = code_of(error);
}

/// The last event of one choice, and perhaps of the request.
void note_last(RequestRecord& record, const chat::Event& event, TimePoint now) {
  record.last_event = now;
  if (!record.started) record.started = now;
  const auto has = [&](bool done) {
    return std::find(record.done.begin(), record.done.end(), done) != record.done.end();
  };
  const bool first = !has(true);
  if (first) record.emitted_tokens = 0;  // what was counted so far were pieces
  record.done[event.choice] = true;
  if (const auto* end = std::get_if<chat::End>(&event.body)) {
    if (!record.first_token) record.first_token = now;
    count_usage(record, end->usage, first);
    note_end(record, *end);
  } else if (const auto* failed = std::get_if<chat::Failed>(&event.body)) {
    count_usage(record, failed->usage, first);
    note_failure(record, failed->error);
  }
  if (has(false)) return;
  if (record.outcome == Outcome::kRunning) record.outcome = Outcome::kFinished;
  record.ended = now;
}

}  // namespace

const char* name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kRunning:
      return "running";
    case Outcome::kFinished:
      return "finished";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

RequestTable::RequestTable(const Clock& clock, OnEnd on_end)
    : clock_(clock), on_end_(std::move(on_end)), last_event_(clock.now()) {}

bool RequestTable::open(RequestRecord record) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.now();
  if (running_.empty()) last_event_ = now;
  record.submitted = now;
  record.last_event = now;
  record.done.assign(record.choices, false);
  const std::string id = record.id;
  return running_.emplace(id, std::move(record)).second;
}

void RequestTable::forget(const std::string& id) {
  const std::lock_guard lock(mutex_);
  running_.erase(id);
}

/// Also of a request that has ended by now.
void RequestTable::accept(const std::string& id, const chat::Accepted& accepted) {
  const std::lock_guard lock(mutex_);
  const auto entry = running_.find(id);
  const auto ended = std::ranges::find(recent_, id, &RequestRecord::id);
  if (entry == running_.end() && ended == recent_.end()) return;
  RequestRecord& record = entry == running_.end() ? *ended : entry->second;
  record.prompt_tokens = accepted.prompt_tokens;
  record.divergence = accepted.divergence;
}

void RequestTable::note(const std::string& id, const chat::Event& event) {
  std::optional<RequestRecord> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = running_.find(id);
    if (entry == running_.end() || event.choice >= entry->second.done.size()) return;
    RequestRecord& record = entry->second;
    last_event_ = clock_.now();
    if (event.is_last()) {
      note_last(record, event, last_event_);
    } else {
      note_progress(record, event, last_event_);
    }
    if (!record.ended) return;
    ended = record;
    end(entry);
  }
  if (on_end_) on_end_(*ended);
}

void RequestTable::end(std::map<std::string, RequestRecord>::iterator entry) {
  recent_.push_front(std::move(entry->second));
  if (recent_.size() > kRecent) recent_.pop_back();
  running_.erase(entry);
}

std::optional<RequestRecord> RequestTable::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto entry = running_.find(id);
  if (entry != running_.end()) return entry->second;
  for (const RequestRecord& record : recent_) {
    if (record.id == id) return record;
  }
  return std::nullopt;
}

size_t RequestTable::running() const {
  const std::lock_guard lock(mutex_);
  return running_.size();
}

Duration RequestTable::silence() const {
  const std::lock_guard lock(mutex_);
  return running_.empty() ? Duration::zero() : clock_.now() - last_event_;
}

Json RequestTable::to_json() const {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.now();
  std::vector<const RequestRecord*> active;
  for (const auto& [id, record] : running_) active.push_back(&record);
  std::sort(active.begin(), active.end(), [](const RequestRecord* a, const RequestRecord* b) {
    return a->submitted > b->submitted;
  });
  Json out{{"object", "list"}, {"active", Json::array()}, {"recent", Json::array()}};
  for (const RequestRecord* record : active) {
    out["active"].push_back(protocol::to_json(*record, now));
  }
  for (const RequestRecord& record : recent_) {
    out["recent"].push_back(protocol::to_json(record, now));
  }
  return out;
}

}  // namespace tandem::protocol
