#include "control/request_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tandem::control {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

gen::Event failed(gen::RequestId id, ErrorCode code, std::string message) {
  return {.request = id, .body = gen::Failed{Error{code, std::move(message)}}};
}

/// The engine's word was lost with it, but the answer's last token was delivered.
std::optional<gen::FinishReason> finish_reason(const gen::Request& request) {
  if (request.emitted.empty()) return std::nullopt;
  const bool is_stop_id = std::find(request.stop_ids.begin(), request.stop_ids.end(),
                                    request.emitted.back()) != request.stop_ids.end();
  if (is_stop_id && !request.ignore_eos) return gen::FinishReason::kStop;
  if (request.emitted.size() >= request.max_tokens) return gen::FinishReason::kLength;
  return std::nullopt;
}

bool is_late(const gen::Request& request, TimePoint accepted_at, TimePoint now) {
  return request.deadline && now - accepted_at >= *request.deadline;
}

gen::Event too_late(const gen::Request& request) {
  return failed(request.id, ErrorCode::kDeadline,
                fmt::format("the request's deadline of {} ms passed", request.deadline->count()));
}

}  // namespace

Status RequestTable::add(gen::Request request, TimePoint now) {
  const gen::RequestId id = request.id;
  if (arrivals_.contains(id)) {
    return Error{ErrorCode::kConflict, fmt::format("request id {} is in use", id)};
  }
  Record record;
  record.accepted_at = now;
  record.has_started = !request.emitted.empty();  // a full engine may not end it
  record.request = std::move(request);
  record.stranded_at = now;
  arrivals_.emplace(id, next_arrival_);
  records_.emplace(next_arrival_++, std::move(record));
  return {};
}

RequestTable::Submissions RequestTable::take_submissions(TimePoint now) {
  Submissions result;
  bool probation_is_free = std::none_of(records_.begin(), records_.end(), [&](const auto& entry) {
    return is_on_probation(entry.second);
  });
  for (auto it = records_.begin(); it != records_.end();) {
    const auto here = it++;
    Record& record = here->second;
    if (record.is_with_engine || now < record.retry_at) continue;
    if (record.is_suspect && !probation_is_free) continue;
    if (auto event = ended_without_engine(record, now)) {
      result.ended.push_back(std::move(*event));
      erase(here);
      continue;
    }
    if (record.is_suspect) probation_is_free = false;
    result.requests.push_back(hand_over(record, now));
  }
  return result;
}

std::optional<gen::Event> RequestTable::record(gen::Event event, TimePoint now) {
  const auto it = find(event.request);
  if (it == records_.end() || !it->second.is_with_engine) return std::nullopt;
  Record& record = it->second;
  if (event.is_last()) {
    erase(it);
    return event;
  }
  record.is_running = true;
  record.has_started = true;
  if (std::holds_alternative<gen::Started>(event.body)) {
    if (std::exchange(record.start_reported, true)) return std::nullopt;
  } else if (const auto* prefilled = std::get_if<gen::Prefilled>(&event.body)) {
    if (prefilled->done <= record.prefill_reported) return std::nullopt;
    record.prefill_reported = prefilled->done;
  } else if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
    if (tokens->tokens.empty()) return std::nullopt;
    for (const gen::Token& token : tokens->tokens) record.request.emitted.push_back(token.id);
    if (record.last_token_at) {
      const auto count = tokens->tokens.size();
      const std::chrono::duration<double> gap = now - *record.last_token_at;
      token_gaps_.add(gap.count() / static_cast<double>(count), count);
    }
    record.last_token_at = now;
  }
  return event;
}

std::optional<gen::Event> RequestTable::refuse(gen::RequestId id,
                                               const Error& error,
                                               TimePoint now) {
  const auto it = find(id);
  if (it == records_.end() || !it->second.is_with_engine) return std::nullopt;
  Record& record = it->second;
  const bool may_pass = error.code == ErrorCode::kBusy || error.code == ErrorCode::kUnavailable;
  if (record.is_cancelled || !may_pass || !record.has_started) {
    gen::Event event{.request = id, .body = gen::Cancelled{}};
    if (!record.is_cancelled) event.body = gen::Failed{error};
    erase(it);
    return event;
  }
  leave_engine(record, now);
  record.retry_at = now + options_.retry_delay;
  return std::nullopt;
}

RequestTable::CancelOutcome RequestTable::cancel(gen::RequestId id) {
  const auto it = find(id);
  if (it == records_.end()) return {};
  if (!it->second.is_with_engine) {
    erase(it);
    return {.ended = gen::Event{.request = id, .body = gen::Cancelled{}}};
  }
  const bool is_first = !std::exchange(it->second.is_cancelled, true);
  return {.ended = std::nullopt, .ask_engine = is_first};
}

std::vector<gen::Event> RequestTable::end_epoch(TimePoint now) {
  blame();
  std::vector<gen::Event> ended;
  for (auto it = records_.begin(); it != records_.end();) {
    const auto here = it++;
    Record& record = here->second;
    const gen::RequestId id = record.request.id;
    if (record.is_with_engine) {
      leave_engine(record, now);
      record.is_resumed = true;
    }
    if (!record.stranded_at) record.stranded_at = now;
    if (auto event = ended_without_engine(record, now)) {
      ended.push_back(std::move(*event));
    } else if (record.deaths > options_.deaths_allowed) {
      ++blamed_;
      ended.push_back(failed(id, ErrorCode::kPeerLost,
                             fmt::format("the request was running at {} rank deaths, which it may "
                                         "have caused; it is not run again",
                                         record.deaths)));
    } else {
      continue;
    }
    erase(here);
  }
  return ended;
}

std::vector<gen::Event> RequestTable::expire(TimePoint now, bool is_serving) {
  std::vector<gen::Event> ended;
  for (auto it = records_.begin(); it != records_.end();) {
    const auto here = it++;
    Record& record = here->second;
    if (record.is_with_engine) continue;
    if (is_serving) {
      record.stranded_at.reset();
    } else if (!record.stranded_at) {
      record.stranded_at = now;
    }
    if (is_late(record.request, record.accepted_at, now)) {
      ended.push_back(too_late(record.request));
    } else if (record.stranded_at && now - *record.stranded_at >= options_.resume_timeout) {
      ended.push_back(
          failed(record.request.id, ErrorCode::kUnavailable,
                 fmt::format("no instance could take the request within {} ms",
                             duration_cast<milliseconds>(options_.resume_timeout).count())));
    } else {
      continue;
    }
    erase(here);
  }
  return ended;
}

std::vector<gen::Event> RequestTable::fail_all(const Error& error) {
  std::vector<gen::Event> ended;
  for (const auto& [arrival, record] : records_) {
    gen::Event event{.request = record.request.id, .body = gen::Failed{error}};
    if (record.is_cancelled) event.body = gen::Cancelled{};
    ended.push_back(std::move(event));
  }
  records_.clear();
  arrivals_.clear();
  with_engine_ = 0;
  return ended;
}

std::optional<uint32_t> RequestTable::deaths(gen::RequestId id) const {
  const auto arrival = arrivals_.find(id);
  if (arrival == arrivals_.end()) return std::nullopt;
  return records_.at(arrival->second).deaths;
}

RequestTable::Records::iterator RequestTable::find(gen::RequestId id) {
  const auto arrival = arrivals_.find(id);
  return arrival == arrivals_.end() ? records_.end() : records_.find(arrival->second);
}

void RequestTable::erase(Records::iterator it) {
  if (it->second.is_with_engine) --with_engine_;
  arrivals_.erase(it->second.request.id);
  records_.erase(it);
}

void RequestTable::leave_engine(Record& record, TimePoint now) {
  --with_engine_;
  record.is_with_engine = false;
  record.is_running = false;
  record.stranded_at = now;
}

bool RequestTable::is_on_probation(const Record& record) const {
  return record.is_suspect && record.is_with_engine &&
         record.request.emitted.size() < record.tokens_at_submit + options_.probation_tokens;
}

std::optional<gen::Event> RequestTable::ended_without_engine(Record& record, TimePoint now) const {
  const gen::RequestId id = record.request.id;
  if (record.is_cancelled) return gen::Event{.request = id, .body = gen::Cancelled{}};
  if (const auto reason = finish_reason(record.request)) {
    return gen::Event{.request = id, .body = gen::Finished{*reason}};
  }
  if (is_late(record.request, record.accepted_at, now)) return too_late(record.request);
  return std::nullopt;
}

gen::Request RequestTable::hand_over(Record& record, TimePoint now) {
  ++with_engine_;
  if (std::exchange(record.is_resumed, false)) ++resumed_;
  record.is_with_engine = true;
  record.tokens_at_submit = record.request.emitted.size();
  record.stranded_at.reset();
  gen::Request request = record.request;
  if (request.deadline) {
    *request.deadline -= duration_cast<milliseconds>(now - record.accepted_at);
  }
  return request;
}

// A death while a suspect resumes is put down to that suspect alone: the others ran without it.
// Otherwise everyone in a step is blamed. Whoever was with the engine resumes as a suspect, since
// the word of its start may have been lost with the engine.
void RequestTable::blame() {
  const auto resuming = std::find_if(records_.begin(), records_.end(), [this](const auto& entry) {
    return is_on_probation(entry.second);
  });
  if (resuming != records_.end()) ++resuming->second.deaths;
  for (auto& [arrival, record] : records_) {
    if (!record.is_with_engine) continue;
    record.is_suspect = true;
    if (record.is_running && resuming == records_.end()) ++record.deaths;
  }
}

}  // namespace tandem::control
