// A scheduler whose answers come at once, for tests.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "schedule/scheduler.h"

namespace tandem::schedule {

using gen::Priority;
using Ids = std::vector<TokenId>;

inline Ids count_up(size_t length, TokenId first = 0) {
  Ids ids(length);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// Plans steps and answers each row that samples with a token of its own, at once.
class Driver {
 public:
  explicit Driver(SchedulerOptions options) : scheduler(options) {}

  /// False when nothing was planned.
  bool step() {
    plan::StepPlan* next = scheduler.next(now);
    if (next == nullptr) return false;
    plan = *next;
    rows = scheduler.rows();
    scheduler.returned();
    for (const PlannedRow& row : rows) {
      if (row.starts) started.push_back(row.request), cached[row.request] = row.cached_tokens;
      if (!row.wants_logits) continue;
      Sequence& sequence = *scheduler.find(row.request);
      scheduler.append(sequence, token_of(row.request));
      if (sequence.length() == sequence.limit) {
        scheduler.remove(row.request);
        ended.push_back(row.request);
      }
    }
    CHECK(scheduler.is_consistent());
    return true;
  }

  void finish(int most = 100'000) {
    while (!scheduler.empty() && most-- > 0) step();
    CHECK(scheduler.empty());
  }

  void add(gen::RequestId id,
           Ids prompt,
           uint32_t max_tokens,
           std::string client = "",
           Priority priority = Priority::kNormal) {
    scheduler.add({.id = id,
                   .client = std::move(client),
                   .prompt = std::move(prompt),
                   .max_tokens = max_tokens,
                   .priority = priority},
                  now);
  }

  const plan::Row* row(gen::RequestId id) const {
    for (const plan::Row& at : plan.rows) {
      if (at.request == id) return &at;
    }
    return nullptr;
  }

  size_t tokens() const {
    size_t sum = 0;
    for (const plan::Row& at : plan.rows) sum += at.tokens.size();
    return sum;
  }

  static TokenId token_of(gen::RequestId id) { return 100'000 + static_cast<TokenId>(id); }

  Scheduler scheduler;
  TimePoint now;
  plan::StepPlan plan;
  std::vector<PlannedRow> rows;
  std::vector<gen::RequestId> started, ended;
  std::map<gen::RequestId, uint32_t> cached;
};

}  // namespace tandem::schedule
