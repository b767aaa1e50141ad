// Real rank processes, killed, stopped and cut off at random moments.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <thread>

#include "rig.h"

namespace tandem::chaos {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kAnswer = 60;  // tokens

/// One of many conversations: what it draws depends on the number alone. Every fourth has a prompt
/// that takes several chunks. Ids below 200 only.
gen::Request conversation(gen::RequestId id, uint64_t number) {
  std::mt19937_64 random(number);
  gen::Request request;
  request.id = id;
  request.prompt.resize(number % 4 == 3 ? 1500 : 20 + random() % 50);
  for (gen::TokenId& token : request.prompt) token = static_cast<gen::TokenId>(random() % 200);
  request.sampling.temperature = 0.8F;
  request.sampling.seed = number;
  request.max_tokens = kAnswer;
  return request;
}

using Tokens = std::vector<gen::TokenId>;

/// What the first conversations draw on one rank that nothing disturbs.
std::vector<Tokens> undisturbed(uint64_t count) {
  Rig rig({.ranks = 1});
  REQUIRE(rig.wait_ready());
  for (uint64_t n = 0; n < count; ++n) {
    REQUIRE(rig.client().submit(conversation(n + 1, n)).has_value());
  }
  REQUIRE(rig.client().wait_all(count, 120s));
  std::vector<Tokens> answers;
  for (uint64_t n = 0; n < count; ++n) {
    const Answer answer = rig.client().answer(n + 1);
    REQUIRE(answer.is_finished());
    REQUIRE(answer.tokens.size() == kAnswer);
    answers.push_back(answer.tokens);
  }
  return answers;
}

enum class Blow { kKill, kStop, kCutOff };

/// One instance, hit again and again in the middle of its answers.
class Battle {
 public:
  Battle(uint32_t ranks,
         uint64_t seed,
         const std::vector<Tokens>& expected,
         std::vector<std::string> fake)
      : ranks_(ranks),
        random_(seed),
        expected_(expected),
        rig_({.ranks = ranks, .fake = std::move(fake), .has_proxies = true, .keeps_plans = true}) {
    REQUIRE(rig_.wait_ready());
  }

  void round(Blow blow) {
    const auto before = rig_.snapshot();
    std::vector<std::pair<gen::RequestId, size_t>> running;
    for (int i = 0; i < 4; ++i) {
      const size_t number = random_() % expected_.size();
      running.emplace_back(++last_id_, number);
      REQUIRE(rig_.client().submit(conversation(last_id_, number)).has_value());
    }
    const auto moment = std::chrono::microseconds(random_() % 400'000);
    const auto rank = static_cast<uint32_t>(random_() % ranks_);
    CAPTURE(moment.count());
    CAPTURE(rank);
    std::this_thread::sleep_for(moment);
    switch (blow) {
      case Blow::kKill:
        rig_.signal(rank, SIGKILL);
        break;
      case Blow::kStop:
        rig_.signal(rank, SIGSTOP);
        break;
      case Blow::kCutOff:
        rig_.cut_off(rank);
        break;
    }
    Duration took{};
    REQUIRE(rig_.wait_lost(before.lost_epochs, 20s, took));
    CHECK(took <= 5s);
    longest_ = std::max(longest_, took);
    REQUIRE(rig_.client().wait_all(last_id_, 60s));
    for (const auto& [id, number] : running) {
      const Answer answer = rig_.client().answer(id);
      CAPTURE(id);
      CHECK(answer.is_finished());
      CHECK(answer.after_last == 0);
      CHECK(answer.tokens == expected_[number]);
    }
    REQUIRE(rig_.wait_ready());
    const auto after = rig_.snapshot();
    CHECK(after.epoch > before.epoch);
    for (uint32_t other = 0; other < ranks_; ++other) {
      const bool was_replaced = after.ranks[other].starts != before.ranks[other].starts;
      CHECK(was_replaced == (other == rank));  // nobody dies while healthy
    }
  }

  /// Stops, checks what is left and replays the recorded plans.
  void end() {
    rig_.stop();
    CHECK(rig_.replayed() > 0);
    MESSAGE(fmt::format("{} ranks: slowest detection {} ms, {} plans replayed", ranks_,
                        longest_ / 1ms, rig_.replayed()));
  }

 private:
  const uint32_t ranks_;
  std::mt19937_64 random_;
  const std::vector<Tokens>& expected_;
  Rig rig_;
  gen::RequestId last_id_ = 0;
  Duration longest_{};
};

void fight(uint32_t ranks,
           uint64_t seed,
           int kills,
           int stops,
           int cuts,
           const std::vector<std::string>& fake = {}) {
  const Quiet quiet;
  CAPTURE(ranks);
  CAPTURE(seed);
  const std::vector<Tokens> expected = undisturbed(8);
  Battle battle(ranks, seed, expected, fake);
  std::vector<Blow> blows(static_cast<size_t>(kills), Blow::kKill);
  blows.insert(blows.end(), static_cast<size_t>(stops), Blow::kStop);
  blows.insert(blows.end(), static_cast<size_t>(cuts), Blow::kCutOff);
  std::mt19937_64 random(seed);
  std::shuffle(blows.begin(), blows.end(), random);
  for (const Blow blow : blows) battle.round(blow);
  battle.end();
}

TEST_SUITE_BEGIN("full");

TEST_CASE("chaos: one rank, 25 blows at random moments leave every stream as it was") {
  fight(1, 1, 15, 5, 5);
}
TEST_CASE("chaos: two ranks, 25 blows at random moments leave every stream as it was") {
  fight(2, 2, 15, 5, 5);
}
TEST_CASE("chaos: three ranks, 25 blows at random moments leave every stream as it was") {
  fight(3, 3, 15, 5, 5);
}
TEST_CASE("chaos: four ranks, 25 blows at random moments leave every stream as it was") {
  fight(4, 4, 15, 5, 5);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("short");

TEST_CASE("chaos: three ranks, six blows at random moments leave every stream as it was") {
  fight(3, 5, 4, 1, 1);
}

TEST_CASE(
    "chaos: a rank that draws and runs a step ahead, six blows leave every stream as it was") {
  fight(1, 6, 4, 1, 1, {"--fake-draws"});
}

TEST_CASE("chaos: a request that crashes ranks fails at its second death, its neighbours finish") {
  const Quiet quiet;
  const std::vector<Tokens> answers = undisturbed(16);
  const auto place_of = [&](size_t number, gen::TokenId token) {
    const Tokens& answer = answers[number];
    return static_cast<size_t>(std::find(answer.begin(), answer.end(), token) - answer.begin());
  };
  // A token that one answer has in its middle, and at least three others do not have. Prompts stay
  // below 200.
  std::optional<std::pair<size_t, gen::TokenId>> culprit;
  std::vector<size_t> neighbours;
  for (gen::TokenId token = 200; token < 256 && !culprit; ++token) {
    for (size_t number = 0; number < answers.size() && !culprit; ++number) {
      const size_t place = place_of(number, token);
      if (place < 10 || place >= kAnswer - 1) continue;
      neighbours.clear();
      for (size_t other = 0; other < answers.size(); ++other) {
        if (place_of(other, token) == kAnswer) neighbours.push_back(other);
      }
      if (neighbours.size() >= 3) culprit = {number, token};
    }
  }
  REQUIRE(culprit.has_value());
  neighbours.resize(3);
  for (const bool is_in_prompt : {false, true}) {
    CAPTURE(is_in_prompt);
    Rig rig({.ranks = 2, .fake = {"--fake-die-at-token", std::to_string(culprit->second)}});
    REQUIRE(rig.wait_ready());
    gen::Request poison = conversation(1, culprit->first);
    if (is_in_prompt) poison.prompt.back() = culprit->second;
    REQUIRE(rig.client().submit(poison).has_value());
    for (size_t i = 0; i < neighbours.size(); ++i) {
      REQUIRE(rig.client().submit(conversation(i + 2, neighbours[i])).has_value());
    }
    REQUIRE(rig.client().wait_all(4, 60s));
    const Answer failed = rig.client().answer(1);
    REQUIRE(failed.failure() != nullptr);
    CHECK(failed.failure()->code == ErrorCode::kPeerLost);
    if (!is_in_prompt) {
      const size_t place = place_of(culprit->first, culprit->second);
      CHECK(failed.tokens.size() <= place + 1);
      CHECK(
          std::equal(failed.tokens.begin(), failed.tokens.end(), answers[culprit->first].begin()));
    }
    for (size_t i = 0; i < neighbours.size(); ++i) {
      const Answer answer = rig.client().answer(i + 2);
      CHECK(answer.is_finished());
      CHECK(answer.tokens == answers[neighbours[i]]);
    }
    CHECK(rig.snapshot().lost_epochs == 2);
  }
}

TEST_CASE("chaos: a cancel stops every rank at once and frees the pages") {
  const Quiet quiet;
  Rig rig({.ranks = 3, .fake = {"--fake-pages", "100"}});  // 1600 positions
  REQUIRE(rig.wait_ready());
  gen::RequestId id = 0;
  for (const size_t tokens_before : {size_t{0}, size_t{20}}) {  // in prefill, in decode
    gen::Request big = conversation(++id, 3);
    big.max_tokens = 1000;
    big.prompt.resize(1000);
    REQUIRE(rig.client().submit(big).has_value());
    if (tokens_before > 0) REQUIRE(rig.client().wait_tokens(id, tokens_before, 20s));
    const TimePoint asked = SteadyClock().now();
    rig.generator().cancel(id);
    REQUIRE(rig.client().wait_all(id, 20s));
    CHECK(SteadyClock().now() - asked < 1s);
    CHECK(rig.client().answer(id).is_cancelled());
    gen::Request next = conversation(++id, 4);  // has room only when the pages are free
    next.prompt.resize(1400, 5);
    next.max_tokens = 20;
    REQUIRE(rig.client().submit(next).has_value());
    REQUIRE(rig.client().wait_all(id, 20s));
    CHECK(rig.client().answer(id).is_finished());
  }
  // Idle: no rank makes a step.
  const auto steps = [&] {
    std::vector<uint64_t> all;
    for (const auto& rank : rig.snapshot().ranks) all.push_back(rank.steps);
    return all;
  };
  std::this_thread::sleep_for(1100ms);  // a beat
  const auto before = steps();
  std::this_thread::sleep_for(1100ms);
  CHECK(steps() == before);
  CHECK(std::all_of(before.begin(), before.end(), [&](uint64_t n) { return n == before[0]; }));
  CHECK(rig.snapshot().lost_epochs == 0);
}

TEST_CASE("chaos: a kill while draining still finishes what runs; new requests are refused") {
  const Quiet quiet;
  const std::vector<Tokens> answers = undisturbed(3);
  Rig rig({.ranks = 2, .keeps_plans = true});
  REQUIRE(rig.wait_ready());
  for (uint64_t n = 0; n < 3; ++n) {
    REQUIRE(rig.client().submit(conversation(n + 1, n)).has_value());
  }
  REQUIRE(rig.client().wait_tokens(1, 5, 20s));
  rig.generator().drain();
  rig.signal(1, SIGKILL);
  CHECK(rig.client().submit(conversation(9, 0)).error().code == ErrorCode::kUnavailable);
  CHECK(rig.generator().wait_drained(30s));
  for (uint64_t n = 0; n < 3; ++n) {
    CHECK(rig.client().answer(n + 1).is_finished());
    CHECK(rig.client().answer(n + 1).tokens == answers[n]);
  }
  rig.stop();
}

TEST_SUITE_END();

}  // namespace
}  // namespace tandem::chaos
