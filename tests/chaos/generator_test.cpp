// The head against scripted ranks: real processes and links, no engine.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "client.h"
#include "control/instance_generator.h"
#include "scripted_token.h"

namespace tandem::chaos {
namespace {

using namespace std::chrono_literals;
using control::InstanceGenerator;
using control::InstanceState;

control::InstanceGeneratorOptions scripted(const std::string& script, uint32_t ranks) {
  control::InstanceGeneratorOptions options{
      .instance = {.name = "scripted", .ranks = ranks}, .program = SCRIPTED_RANK, .arguments = {}};
  options.arguments = [script, ranks](uint32_t rank, const std::string& head) {
    return std::vector<std::string>{script, std::to_string(rank), std::to_string(ranks), head,
                                    "scripted"};
  };
  return options;
}

gen::Request request(gen::RequestId id, uint32_t max_tokens) {
  gen::Request r;
  r.id = id;
  r.prompt = {1, 2, 3};
  r.max_tokens = max_tokens;
  return r;
}

bool is_right(gen::RequestId id, const Answer& answer) {
  for (size_t i = 0; i < answer.tokens.size(); ++i) {
    if (answer.tokens[i] != scripted_token(id, i)) return false;
  }
  return answer.last.size() == 1 && answer.after_last == 0;
}

bool is_alive(uint64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH; }

TEST_SUITE_BEGIN("short");

TEST_CASE("generator: streams arrive whole, and stop leaves no process") {
  const Quiet quiet;
  auto generator = InstanceGenerator::start(scripted("plain", 3));
  REQUIRE(generator.has_value());
  Client client(**generator);
  CHECK((*generator)->limits() == gen::Limits{});
  CHECK(client.submit(request(1, 20)).has_value());  // before it is ready
  REQUIRE((*generator)->wait_ready(20s));
  CHECK((*generator)->limits().max_context == 4096);
  for (gen::RequestId id = 2; id <= 8; ++id) CHECK(client.submit(request(id, 20)).has_value());
  REQUIRE(client.wait_all(8, 20s));
  for (gen::RequestId id = 1; id <= 8; ++id) {
    CHECK(client.answer(id).is_finished());
    CHECK(client.answer(id).tokens.size() == 20);
    CHECK(is_right(id, client.answer(id)));
  }
  const auto before = (*generator)->snapshot();
  CHECK(before.is_healthy);
  REQUIRE(before.ranks.size() == 3);
  for (const auto& rank : before.ranks) CHECK(is_alive(rank.pid));
  (*generator)->stop();
  for (const auto& rank : before.ranks) CHECK(!is_alive(rank.pid));
  CHECK((*generator)->snapshot().state == InstanceState::kStopped);
  CHECK(client.submit(request(9, 1)).error().code == ErrorCode::kUnavailable);
}

TEST_CASE("generator: what cannot fit is refused with both numbers, a used id with a conflict") {
  const Quiet quiet;
  auto generator = InstanceGenerator::start(scripted("plain", 1));
  REQUIRE(generator.has_value());
  REQUIRE((*generator)->wait_ready(20s));
  Client client(**generator);
  gen::Request long_one = request(1, 5);
  long_one.prompt.assign(4096, 1);
  const Status refused = client.submit(long_one);
  CHECK(refused.error().code == ErrorCode::kTooLarge);
  CHECK(refused.error().message.find("4096 tokens") != std::string::npos);
  gen::Request strange = request(1, 5);
  strange.prompt = {static_cast<gen::TokenId>(kScriptedVocab)};
  CHECK(client.submit(strange).error().code == ErrorCode::kInvalid);
  CHECK(client.submit(request(1, 1000)).has_value());
  CHECK(client.submit(request(1, 1000)).error().code == ErrorCode::kConflict);
  (*generator)->cancel(1);
  REQUIRE(client.wait_all(1, 10s));
  CHECK(client.answer(1).is_cancelled());
}

TEST_CASE("generator: a stream goes on when a rank is killed, and when it is stopped") {
  const Quiet quiet;
  for (const int signal : {SIGKILL, SIGSTOP}) {
    auto generator = InstanceGenerator::start(scripted("plain", 2));
    REQUIRE(generator.has_value());
    REQUIRE((*generator)->wait_ready(20s));
    Client client(**generator);
    CHECK(client.submit(request(1, 200)).has_value());
    REQUIRE(client.wait_tokens(1, 10, 10s));
    const auto victim = (*generator)->snapshot().ranks[0];
    ::kill(static_cast<pid_t>(victim.pid), signal);
    REQUIRE(client.wait_all(1, 20s));
    CHECK(client.answer(1).is_finished());
    CHECK(client.answer(1).tokens.size() == 200);
    CHECK(is_right(1, client.answer(1)));
    CHECK(!is_alive(victim.pid));
    const auto after = (*generator)->snapshot();
    CHECK(after.epoch == 2);
    CHECK(after.ranks[victim.rank].pid != victim.pid);
    CHECK(after.ranks[1 - victim.rank].starts == 1);  // the healthy one was kept
  }
}

TEST_CASE("generator: a rank that does not drop a lost epoch is replaced") {
  const Quiet quiet;
  auto generator = InstanceGenerator::start(scripted("never-aborts", 2));
  REQUIRE(generator.has_value());
  REQUIRE((*generator)->wait_ready(20s));
  const auto before = (*generator)->snapshot();
  ::kill(static_cast<pid_t>(before.ranks[1].pid), SIGKILL);
  Client client(**generator);
  while ((*generator)->snapshot().epoch == 1) std::this_thread::yield();
  CHECK(client.submit(request(1, 5)).has_value());
  REQUIRE(client.wait_all(1, 20s));
  CHECK(client.answer(1).is_finished());
  CHECK(!is_alive(before.ranks[0].pid));
}

TEST_CASE("generator: a request that kills its rank fails typed, and the next one works") {
  const Quiet quiet;
  auto generator = InstanceGenerator::start(scripted("dies-at-token-5", 1));
  REQUIRE(generator.has_value());
  REQUIRE((*generator)->wait_ready(20s));
  Client client(**generator);
  CHECK(client.submit(request(1, 100)).has_value());
  REQUIRE(client.wait_all(1, 20s));
  REQUIRE(client.answer(1).failure() != nullptr);
  CHECK(client.answer(1).failure()->code == ErrorCode::kPeerLost);
  CHECK(client.answer(1).tokens.size() == 4);
  CHECK(is_right(1, client.answer(1)));
  CHECK(client.submit(request(2, 4)).has_value());
  REQUIRE(client.wait_all(2, 20s));
  CHECK(client.answer(2).is_finished());
}

TEST_CASE("generator: a cancel while the instance re-forms ends the request at once") {
  const Quiet quiet;
  auto generator = InstanceGenerator::start(scripted("plain", 2));
  REQUIRE(generator.has_value());
  REQUIRE((*generator)->wait_ready(20s));
  Client client(**generator);
  CHECK(client.submit(request(1, 100000)).has_value());
  REQUIRE(client.wait_tokens(1, 5, 10s));
  ::kill(static_cast<pid_t>((*generator)->snapshot().ranks[0].pid), SIGKILL);
  while ((*generator)->snapshot().state == InstanceState::kReady) std::this_thread::yield();
  (*generator)->cancel(1);
  REQUIRE(client.wait_all(1, 10s));
  CHECK(client.answer(1).is_cancelled());
}

TEST_CASE(
    "generator: ranks that end at once, lie about their pid or talk garbage fail it by name") {
  const Quiet quiet;
  const std::pair<const char*, const char*> cases[] = {
      {"exits-with-3", "exited with code 3"},
      {"wrong-pid", "exited with code 9"},
      {"garbage", "exited with code 9"},
  };
  for (const auto& [script, reason] : cases) {
    CAPTURE(std::string(script));
    auto generator = InstanceGenerator::start(scripted(script, 1));
    REQUIRE(generator.has_value());
    Client client(**generator);
    const Status accepted = client.submit(request(1, 5));
    CHECK(!(*generator)->wait_ready(30s));
    const auto snapshot = (*generator)->snapshot();
    CHECK(snapshot.state == InstanceState::kFailed);
    CHECK(snapshot.trouble.find(reason) != std::string::npos);
    REQUIRE(accepted.has_value());
    REQUIRE(client.wait_all(1, 10s));
    CHECK(client.answer(1).failure()->code == ErrorCode::kUnavailable);
  }
  auto missing = scripted("plain", 1);
  missing.program = "/no/such/rank";
  auto generator = InstanceGenerator::start(missing);
  REQUIRE(generator.has_value());
  CHECK(!(*generator)->wait_ready(30s));
  CHECK((*generator)->snapshot().trouble.find("/no/such/rank") != std::string::npos);
}

TEST_CASE("generator: drain finishes what runs and refuses what comes") {
  const Quiet quiet;
  auto generator = InstanceGenerator::start(scripted("plain", 1));
  REQUIRE(generator.has_value());
  REQUIRE((*generator)->wait_ready(20s));
  Client client(**generator);
  CHECK(client.submit(request(1, 50)).has_value());
  (*generator)->drain();
  CHECK((*generator)->snapshot().is_draining);
  CHECK(client.submit(request(2, 5)).error().code == ErrorCode::kUnavailable);
  CHECK((*generator)->wait_drained(20s));
  CHECK(client.answer(1).is_finished());
}

TEST_SUITE_END();

}  // namespace
}  // namespace tandem::chaos
