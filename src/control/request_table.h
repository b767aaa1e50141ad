// The head's memory of every unfinished request: enough to resume each one after any rank has died.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/result.h"
#include "gen/event.h"
#include "gen/request.h"

namespace tandem::control {

struct RequestTableOptions {
  /// A request that was running when so many epochs were lost is failed: it may be the cause.
  uint32_t deaths_allowed = 1;
  /// How long a request may be without an engine before it is failed.
  Duration resume_timeout = std::chrono::seconds(60);
  /// Suspects (requests that were with the engine at a death) resume one at a time; the next may
  /// start when this one drew so many new tokens or ended. So the culprit is found, and dies alone.
  uint32_t probation_tokens = 4;
  /// A started request that a full engine did not take back is offered again after this.
  Duration retry_delay = std::chrono::milliseconds(200);
};

/// Pure and deterministic: time comes in, events to deliver come out. Each accepted request gets
/// exactly one last event; each token is let through once. One thread.
class RequestTable {
 public:
  explicit RequestTable(RequestTableOptions options) : options_(options) {}

  /// kConflict when the id is in use.
  Status add(gen::Request request, TimePoint now);

  /// Requests to hand to the engine of the current epoch now, with `emitted` and what is left of
  /// `deadline` filled in. `ended` are those found complete or too late instead.
  struct Submissions {
    std::vector<gen::Request> requests;
    std::vector<gen::Event> ended;
  };
  Submissions take_submissions(TimePoint now);

  /// Records an event of the current epoch, and returns what its owner may see of it: nothing when
  /// the request is not with the engine, or when a resume repeats what was said before.
  std::optional<gen::Event> record(gen::Event event, TimePoint now);

  /// The engine did not accept a submission, which ends the request, unless it had started before
  /// and the engine is only full: then it is offered again later (empty result).
  std::optional<gen::Event> refuse(gen::RequestId id, const Error& error, TimePoint now);

  struct CancelOutcome {
    std::optional<gen::Event> ended;  // it was not with the engine: this is its last event
    bool ask_engine = false;          // the engine must be told, and will say the last event
  };
  CancelOutcome cancel(gen::RequestId id);

  /// The epoch is over, lost by a fault, and every request waits again. Returns last events: of
  /// requests that ran at too many deaths, were being cancelled, or were complete but for the word.
  std::vector<gen::Event> end_epoch(TimePoint now);

  /// Last events of waiting requests whose deadline or, while `is_serving` is false, whose time to
  /// be resumed has passed.
  std::vector<gen::Event> expire(TimePoint now, bool is_serving);

  /// Ends every request.
  std::vector<gen::Event> fail_all(const Error& error);

  size_t size() const { return records_.size(); }
  bool is_empty() const { return records_.empty(); }
  /// Requests handed to the engine of this epoch and not ended.
  size_t with_engine() const { return with_engine_; }
  /// Requests failed because they ran at too many deaths, ever.
  uint64_t blamed() const { return blamed_; }
  /// Hand-overs of a request that a lost epoch had taken from an engine, ever.
  uint64_t resumed() const { return resumed_; }
  /// Seconds between the tokens of one request as they came, over lost epochs too.
  const Histogram& token_gaps() const { return token_gaps_; }

  /// Epochs that were lost while it ran; nothing when it is not here. For tests.
  std::optional<uint32_t> deaths(gen::RequestId id) const;

 private:
  struct Record {
    gen::Request request;  // emitted grows with every delivered token
    uint32_t deaths = 0;
    TimePoint accepted_at{};
    bool has_started = false;
    std::optional<TimePoint> last_token_at;
    std::optional<TimePoint> stranded_at;  // since when it has had no engine to go to
    size_t tokens_at_submit = 0;
    uint32_t prefill_reported = 0;
    TimePoint retry_at{};
    bool is_with_engine = false;
    bool is_running = false;  // in a step of this epoch
    bool is_suspect = false;  // resumes alone
    bool is_cancelled = false;
    bool start_reported = false;
    bool is_resumed = false;  // an epoch was lost while it was with the engine
  };
  using Records = std::map<uint64_t, Record>;  // by order of arrival

  Records::iterator find(gen::RequestId id);
  void erase(Records::iterator it);
  void leave_engine(Record& record, TimePoint now);
  bool is_on_probation(const Record& record) const;
  std::optional<gen::Event> ended_without_engine(Record& record, TimePoint now) const;
  gen::Request hand_over(Record& record, TimePoint now);
  void blame();

  RequestTableOptions options_;
  Records records_;
  std::unordered_map<gen::RequestId, uint64_t> arrivals_;
  uint64_t next_arrival_ = 0;
  size_t with_engine_ = 0;
  uint64_t blamed_ = 0;
  uint64_t resumed_ = 0;
  Histogram token_gaps_{token_times()};
};

}  // namespace tandem::control
