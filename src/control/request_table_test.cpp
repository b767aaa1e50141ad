#include "control/request_table.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace tandem::control {
namespace {

using namespace std::chrono_literals;

gen::Request request(gen::RequestId id) {
  gen::Request r;
  r.id = id;
  r.prompt = {1, 2, 3};
  r.max_tokens = 100;
  r.stop_ids = {7};
  return r;
}

gen::Event tokens(gen::RequestId id, const std::vector<gen::TokenId>& ids) {
  gen::Tokens body;
  for (const gen::TokenId token : ids)
    body.tokens.push_back({.id = token, .logprob = 0, .top = {}});
  return {.request = id, .body = body};
}

gen::Event started(gen::RequestId id) { return {.request = id, .body = gen::Started{}}; }

/// A table, and the time, which stands still unless a test moves it.
struct Fixture {
  RequestTable table{RequestTableOptions{}};
  TimePoint now{};

  void add(gen::RequestId id) { REQUIRE(table.add(request(id), now).has_value()); }
  std::vector<gen::RequestId> submit() {
    std::vector<gen::RequestId> ids;
    for (const gen::Request& r : table.take_submissions(now).requests) ids.push_back(r.id);
    return ids;
  }
  void run(gen::RequestId id) { table.record(started(id), now); }
  std::vector<gen::RequestId> die() {
    std::vector<gen::RequestId> ids;
    for (const gen::Event& event : table.end_epoch(now)) ids.push_back(event.request);
    return ids;
  }
  uint32_t deaths(gen::RequestId id) { return table.deaths(id).value_or(99); }
};

using Ids = std::vector<gen::RequestId>;

TEST_CASE_FIXTURE(Fixture, "request table: an id in use is refused, and free again after the end") {
  add(1);
  CHECK(table.add(request(1), now).error().code == ErrorCode::kConflict);
  submit();
  CHECK(table.record({.request = 1, .body = gen::Finished{}}, now).has_value());
  CHECK(table.is_empty());
  add(1);
}

TEST_CASE_FIXTURE(Fixture, "request table: a resumed request carries what was delivered, once") {
  add(1);
  CHECK(submit() == Ids{1});
  CHECK(submit().empty());
  CHECK(table.record(started(1), now).has_value());
  CHECK(table.record(tokens(1, {10, 11}), now).has_value());
  CHECK(die().empty());
  CHECK(!table.record(tokens(1, {12}), now).has_value());  // a late word of the lost epoch
  const auto again = table.take_submissions(now).requests;
  REQUIRE(again.size() == 1);
  CHECK(again[0].emitted == std::vector<gen::TokenId>{10, 11});
  CHECK(!table.record(started(1), now).has_value());  // said before
  CHECK(table.record(tokens(1, {12}), now) == tokens(1, {12}));
}

TEST_CASE_FIXTURE(Fixture, "request table: prefill progress never goes back") {
  const auto progress = [&](uint32_t done) {
    return table.record({.request = 1, .body = gen::Prefilled{done, 3}}, now).has_value();
  };
  add(1);
  submit();
  CHECK(progress(2));
  die();
  submit();
  CHECK(!progress(1));
  CHECK(!progress(2));
  CHECK(progress(3));
}

TEST_CASE_FIXTURE(Fixture,
                  "request table: a complete answer whose last word was lost is finished") {
  add(1);
  gen::Request short_one = request(2);
  short_one.max_tokens = 2;
  REQUIRE(table.add(short_one, now).has_value());
  submit();
  table.record(tokens(1, {10, 7}), now);
  table.record(tokens(2, {10, 11}), now);
  const auto ended = table.end_epoch(now);
  REQUIRE(ended.size() == 2);
  CHECK(ended[0] == gen::Event{.request = 1, .body = gen::Finished{gen::FinishReason::kStop}});
  CHECK(ended[1] == gen::Event{.request = 2, .body = gen::Finished{gen::FinishReason::kLength}});
  CHECK(table.is_empty());
}

TEST_CASE_FIXTURE(Fixture, "request table: a request that runs at its second death is failed") {
  add(1);
  add(2);
  submit();
  run(1);  // 2 is merely queued
  CHECK(die().empty());
  CHECK(deaths(1) == 1);
  CHECK(deaths(2) == 0);
  CHECK(submit() == Ids{1});
  run(1);
  const auto ended = table.end_epoch(now);
  REQUIRE(ended.size() == 1);
  const auto* failed = std::get_if<gen::Failed>(&ended[0].body);
  REQUIRE(failed != nullptr);
  CHECK(failed->error.code == ErrorCode::kPeerLost);
  CHECK(failed->error.message.find("running at 2 rank deaths") != std::string::npos);
  CHECK(table.blamed() == 1);
  CHECK(table.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "request table: the culprit among neighbours dies alone") {
  for (const gen::RequestId id : {1, 2, 3}) add(id);
  submit();
  for (const gen::RequestId id : {1, 2, 3}) run(id);
  CHECK(die().empty());
  CHECK(submit() == Ids{1});  // suspects one at a time
  add(4);
  CHECK(submit() == Ids{4});  // newcomers do not wait for them
  table.record(tokens(1, {10, 11, 12}), now);
  CHECK(submit().empty());
  table.record(tokens(1, {13}), now);
  CHECK(submit() == Ids{2});
  run(2);
  run(4);
  CHECK(die() == Ids{2});  // 1 and 4 were in the step too, but had run without 2
  CHECK(deaths(1) == 1);
  CHECK(deaths(4) == 0);
  CHECK(table.size() == 3);
}

TEST_CASE_FIXTURE(Fixture,
                  "request table: a culprit is found even if no word of its start survives") {
  for (const gen::RequestId id : {1, 2}) add(id);
  submit();
  CHECK(die().empty());
  int lost_epochs = 1;
  Ids ended;
  while (ended.empty() && lost_epochs < 20) {
    for (const gen::RequestId id : submit()) {
      if (id != 2) table.record(tokens(id, {10, 11, 12, 13}), now);
    }
    const Ids after = submit();
    if (deaths(1) == 99 || std::count(after.begin(), after.end(), 2) > 0) {
      ended = die();
      ++lost_epochs;
    }
  }
  CHECK(ended == Ids{2});
  CHECK(lost_epochs == 3);  // it was not known to run at the first
  CHECK(deaths(1) == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "request table: cancelling ends a waiting request at once, a submitted once") {
  add(1);
  add(2);
  CHECK(table.cancel(1).ended == gen::Event{.request = 1, .body = gen::Cancelled{}});
  submit();
  CHECK(table.cancel(2).ask_engine);
  CHECK(!table.cancel(2).ask_engine);
  CHECK(!table.cancel(9).ask_engine);
  const auto ended = table.end_epoch(now);  // the engine's answer was lost: nothing to resume
  REQUIRE(ended.size() == 1);
  CHECK(ended[0] == gen::Event{.request = 2, .body = gen::Cancelled{}});
}

TEST_CASE_FIXTURE(Fixture, "request table: deadlines count from the submission, over deaths") {
  gen::Request r = request(1);
  r.deadline = 1000ms;
  REQUIRE(table.add(r, now).has_value());
  submit();
  now += 400ms;
  die();
  const auto again = table.take_submissions(now).requests;
  REQUIRE(again.size() == 1);
  CHECK(again[0].deadline == 600ms);
  die();
  now += 600ms;
  const auto late = table.expire(now, false);
  REQUIRE(late.size() == 1);
  CHECK(std::get<gen::Failed>(late[0].body).error.code == ErrorCode::kDeadline);
}

TEST_CASE_FIXTURE(Fixture, "request table: what cannot be resumed in time is failed") {
  add(1);
  now += 59s;
  CHECK(table.expire(now, false).empty());
  now += 1s;
  const auto late = table.expire(now, false);
  REQUIRE(late.size() == 1);
  CHECK(std::get<gen::Failed>(late[0].body).error.code == ErrorCode::kUnavailable);
  CHECK(table.is_empty());
}

TEST_CASE_FIXTURE(Fixture,
                  "request table: a suspect that waits its turn while others run is not late") {
  add(1);
  add(2);
  submit();
  run(1);
  run(2);
  die();
  CHECK(submit() == Ids{1});
  for (int i = 0; i < 10; ++i) {
    now += 30s;
    CHECK(table.expire(now, true).empty());
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "request table: a refusal ends a new request, and delays a started one") {
  const Error busy{ErrorCode::kBusy, "full"};
  add(1);
  submit();
  CHECK(table.refuse(1, busy, now) == gen::Event{.request = 1, .body = gen::Failed{busy}});
  add(2);
  submit();
  table.record(tokens(2, {10}), now);
  die();
  submit();
  CHECK(!table.refuse(2, busy, now).has_value());
  CHECK(submit().empty());
  now += 200ms;
  CHECK(submit() == Ids{2});
  const Error invalid{ErrorCode::kInvalid, "bad"};
  CHECK(table.refuse(2, invalid, now) == gen::Event{.request = 2, .body = gen::Failed{invalid}});
}

}  // namespace
}  // namespace tandem::control
