#include "app/rank/rank.h"

#include <doctest/doctest.h>

#include <future>

#include "app/rank/fake_model.h"
#include "app/rank/head_test.h"

namespace tandem::app {
namespace {

using namespace testing;

/// A rank in a thread of this process.
class RankThread {
 public:
  RankThread(const TestHead& head,
             uint32_t rank,
             uint32_t size,
             engine::FakeOptions fake = {},
             std::chrono::milliseconds head_timeout = 10s)
      : rank_({.rank = rank,
               .size = size,
               .control = head.address(),
               .secret = control_secret(),
               .instance = "test",
               .build = "b",
               .beat_interval = 50ms,
               .head_timeout = head_timeout,
               .end_timeout = 5s},
              std::make_unique<FakeModel>(fake)) {
    exit_ = std::async(std::launch::async, [this] { return rank_.run(); });
  }
  RankExit exit() {
    REQUIRE(exit_.wait_for(20s) == std::future_status::ready);
    return exit_.get();
  }

 private:
  Rank rank_;
  std::future<RankExit> exit_;
};

std::vector<std::unique_ptr<RankThread>> start(const TestHead& head,
                                               uint32_t size,
                                               const engine::FakeOptions& fake = {}) {
  std::vector<std::unique_ptr<RankThread>> ranks;
  for (uint32_t rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<RankThread>(head, rank, size, fake));
  }
  return ranks;
}

void shut_down(TestHead& head, std::vector<std::unique_ptr<RankThread>>& ranks) {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) head.send(rank, plan::Shutdown{});
  for (auto& rank : ranks) CHECK(rank->exit() == RankExit::kDone);
}

std::vector<gen::TokenId> answer_of_one_rank(uint32_t max_tokens) {
  TestHead head;
  auto ranks = start(head, 1);
  head.form(1, 1);
  head.send(0, plan::Submit{.epoch = 1, .request = request(5, max_tokens)});
  auto tokens = head.tokens(5);
  shut_down(head, ranks);
  return tokens;
}

TEST_CASE("rank: says who it is before it loads, then forms, answers and shuts down with code 0") {
  TestHead head;
  auto ranks = start(head, 1);
  const plan::Hello hello = head.hello(0);
  CHECK(hello.instance == "test");
  CHECK(hello.size == 1);
  CHECK(hello.memory_bytes > 0);
  CHECK(hello.plan_address.find("127.0.0.1:") == 0);
  head.form(1, 1);
  head.send(0, plan::Submit{.epoch = 1, .request = request(5, 40)});
  CHECK(head.tokens(5).size() == 40);
  shut_down(head, ranks);
}

TEST_CASE("rank: says what it holds, and rank 0 what its engine has done over all epochs") {
  TestHead head;
  auto ranks = start(head, 2);
  head.form(1, 2);
  head.send(0, plan::Submit{.epoch = 1, .request = request(5, 40)});
  head.tokens(5);
  head.abort(1, 2);
  head.form(2, 2);
  head.send(0, plan::Submit{.epoch = 2, .request = request(6, 10)});
  head.tokens(6);
  const auto said = head.next<plan::Figures>(0, [](const plan::Figures& figures) {
    return figures.engine && figures.engine->totals.answer_tokens == 50;
  });
  REQUIRE(said);
  const plan::EngineTotals& totals = said->engine->totals;
  CHECK(totals.prompt_tokens == 16);
  CHECK(totals.computed_tokens >= 16 + 39 + 9);  // the pages of epoch 1 were forgotten
  CHECK(totals.steps >= 50);
  CHECK(totals.rows == totals.steps);
  uint64_t timed = 0;
  for (const uint64_t count : totals.step_counts) timed += count;
  CHECK(timed == totals.steps);
  CHECK(said->engine->pages.referenced == 0);
  CHECK(said->engine->pages.cached > 0);
  CHECK(said->engine->window_pages.total() + said->engine->states.total() == 0);
  CHECK(said->memory.cache_bytes > 0);
  CHECK(said->memory.resident_bytes > said->memory.cache_bytes);
  const auto other = head.next<plan::Figures>(
      1, [](const plan::Figures& figures) { return figures.memory.cache_bytes > 0; });
  REQUIRE(other);
  CHECK(!other->engine);
  shut_down(head, ranks);
}

TEST_CASE("rank: 2 to 4 ranks answer what one answers") {
  const auto expected = answer_of_one_rank(60);
  for (uint32_t size = 2; size <= 4; ++size) {
    CAPTURE(size);
    TestHead head;
    auto ranks = start(head, size);
    head.form(1, size);
    head.send(0, plan::Submit{.epoch = 1, .request = request(5, 60)});
    CHECK(head.tokens(5) == expected);
    shut_down(head, ranks);
  }
}

TEST_CASE("rank: an aborted epoch's answer goes on in the next one, with the same tokens") {
  const auto expected = answer_of_one_rank(200);
  TestHead head;
  auto ranks = start(head, 3, {.step_delay = std::chrono::microseconds(500)});
  std::vector<gen::TokenId> answer;
  for (uint32_t epoch = 1; epoch <= 4; ++epoch) {
    CAPTURE(epoch);
    head.form(epoch, 3);
    auto resumed = request(5, 200);
    resumed.emitted = answer;
    head.send(0, plan::Submit{.epoch = epoch, .request = resumed});
    const auto more = head.tokens(5, epoch == 4 ? 1000 : 30);
    answer.insert(answer.end(), more.begin(), more.end());
    if (epoch < 4) head.abort(epoch, 3);
  }
  CHECK(answer == expected);
  shut_down(head, ranks);
}

TEST_CASE("rank: beats tell epoch, steps and work, also while a step hangs") {
  TestHead head;
  auto ranks = start(head, 1, {.step_delay = std::chrono::hours(1)});
  head.form(3, 1);
  head.send(0, plan::Submit{.epoch = 3, .request = request(5, 10)});
  const auto busy = [](const plan::Beat& b) { return b.epoch == 3 && b.busy && b.steps == 0; };
  CHECK(head.next<plan::Beat>(0, busy));
  CHECK(head.next<plan::Beat>(0, busy));
  head.abort(3, 1);
  CHECK(head.next<plan::Beat>(0, [](const plan::Beat& b) { return !b.busy; }));
  shut_down(head, ranks);
}

TEST_CASE("rank: when one goes, the others report a fault and form again with a new one") {
  const auto expected = answer_of_one_rank(50);
  TestHead head;
  auto ranks = start(head, 3, {.step_delay = std::chrono::microseconds(500)});
  head.form(1, 3);
  head.send(0, plan::Submit{.epoch = 1, .request = request(5, 1000)});
  head.tokens(5, 10);
  head.send(1, plan::Shutdown{});
  CHECK(ranks[1]->exit() == RankExit::kDone);
  const auto fault = head.next<plan::Fault>(0);
  REQUIRE(fault);
  CHECK(fault->epoch == 1);
  CHECK(fault->error.code == ErrorCode::kPeerLost);
  CHECK(fault->error.message.find("rank 1 ") == 0);
  for (const uint32_t rank : {0U, 2U}) {
    head.send(rank, plan::Abort{.epoch = 1});
    REQUIRE(head.next<plan::Aborted>(rank));
  }
  head.forget(1);
  ranks[1] = std::make_unique<RankThread>(head, 1, 3);
  head.form(2, 3);
  head.send(0, plan::Submit{.epoch = 2, .request = request(6, 50)});
  CHECK(head.tokens(6) == expected);
  shut_down(head, ranks);
}

TEST_CASE(
    "rank: a group that does not meet is a fault that names the missing, and can be aborted") {
  TestHead head;
  auto ranks = start(head, 2);
  plan::Form form{.epoch = 1, .rank = 0, .size = 2};
  form.plan_addresses = {head.hello(0).plan_address, ""};
  form.secret.assign(32, std::byte{1});
  form.timeout = 200ms;
  head.send(0, form);  // rank 1 is not told
  const auto fault = head.next<plan::Fault>(0);
  REQUIRE(fault);
  CHECK(fault->error.message == "epoch 1: no plan link from rank 1 within 200 ms");
  form.epoch = 2;
  form.timeout = 60s;
  head.send(0, plan::Abort{.epoch = 1});
  REQUIRE(head.next<plan::Aborted>(0));
  head.send(0, form);
  head.send(0, plan::Abort{.epoch = 2});  // before or while it waits: at once, not after 60 s
  CHECK(head.next<plan::Aborted>(0));
  (void)head.hello(1);
  head.form(3, 2);
  shut_down(head, ranks);
}

TEST_CASE("rank: a follower whose rank 0 does not answer can be aborted at once") {
  TestHead head;
  auto ranks = start(head, 2);
  plan::Form form{.epoch = 1, .rank = 1, .size = 2};
  form.plan_addresses = {head.hello(0).plan_address, ""};  // rank 0 has no secret yet: no answer
  form.secret.assign(32, std::byte{1});
  form.timeout = 60s;
  (void)head.hello(1);
  head.send(1, form);
  CHECK(head.next<plan::Beat>(1, [](const plan::Beat& b) { return b.epoch == 1; }));
  head.send(1, plan::Abort{.epoch = 1});
  CHECK(head.next<plan::Aborted>(1));
  head.form(2, 2);
  shut_down(head, ranks);
}

TEST_CASE("rank: requests that cannot be taken are refused by id") {
  TestHead head;
  auto ranks = start(head, 1, {.max_context = 64});
  head.form(2, 1);
  auto long_one = request(9, 10);
  long_one.prompt.assign(100, 1);
  head.send(0, plan::Submit{.epoch = 2, .request = long_one});
  auto refused = head.next<plan::Refused>(0);
  REQUIRE(refused);
  CHECK(refused->request == 9);
  CHECK(refused->error.code == ErrorCode::kTooLarge);
  head.send(0, plan::Submit{.epoch = 1, .request = request(10, 10)});
  refused = head.next<plan::Refused>(0);
  REQUIRE(refused);
  CHECK(refused->request == 10);
  CHECK(refused->error.code == ErrorCode::kConflict);
  shut_down(head, ranks);
}

TEST_CASE("rank: a cancel ends a request with Cancelled, a drain waits for the last") {
  TestHead head;
  auto ranks = start(head, 1, {.step_delay = std::chrono::milliseconds(1)});
  head.form(1, 1);
  head.send(0, plan::Submit{.epoch = 1, .request = request(5, 3000)});
  head.tokens(5, 5);
  head.send(0, plan::Drain{});
  head.send(0, plan::Cancel{.epoch = 1, .request = 5});
  CHECK(head.next<plan::Report>(0, [](const plan::Report& report) {
    return std::holds_alternative<gen::Cancelled>(report.events.back().body);
  }));
  CHECK(head.next<plan::Drained>(0));
  shut_down(head, ranks);
}

TEST_CASE("rank: ends when the control link closes, also while a step hangs") {
  TestHead head;
  auto ranks = start(head, 2, {.step_delay = std::chrono::hours(1)});
  head.form(1, 2);
  head.send(0, plan::Submit{.epoch = 1, .request = request(5, 10)});
  CHECK(head.next<plan::Beat>(0, [](const plan::Beat& b) { return b.busy; }));
  head.drop_all();
  for (auto& rank : ranks) CHECK(rank->exit() == RankExit::kHeadGone);
}

TEST_CASE("rank: ends when the head falls silent, and not before") {
  TestHead head;
  RankThread rank(head, 0, 1, {}, 500ms);
  (void)head.hello(0);
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) {
    head.send(0, plan::HeadBeat{});
    (void)head.next<plan::Beat>(0);
    (void)head.next<plan::Beat>(0);
  }
  const auto spoke = std::chrono::steady_clock::now() - begun;
  CHECK(spoke > 500ms);
  CHECK(rank.exit() == RankExit::kHeadGone);
  CHECK(std::chrono::steady_clock::now() - begun > spoke + 300ms);
}

TEST_CASE("rank: without a head, or with another secret, it ends with code 4") {
  auto head = std::make_unique<TestHead>();
  RankConfig config{.rank = 0, .size = 1, .control = head->address()};
  config.secret.assign(32, std::byte{1});
  CHECK(Rank(config, std::make_unique<FakeModel>(engine::FakeOptions{})).run() ==
        RankExit::kNoHead);
  head.reset();
  config.secret = control_secret();
  CHECK(Rank(config, std::make_unique<FakeModel>(engine::FakeOptions{})).run() ==
        RankExit::kNoHead);
}

}  // namespace
}  // namespace tandem::app
