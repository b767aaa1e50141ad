// Ranks of the real model are killed and stopped at random moments; the answers stay what they
// were.
#include <doctest/doctest.h>
#include <signal.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "instance.h"

namespace tandem::default_model {
namespace {

constexpr size_t kRequests = 3;
constexpr uint32_t kTokens = 48;

/// Sampled, so that a draw out of place would show; the second one is bound by a grammar.
gen::Request long_request_of(const Reference& reference, gen::RequestId id) {
  gen::Request request;
  request.id = id;
  request.client = "test";
  request.prompt = reference.ids;
  for (int i = 0; i < 6; ++i)
    request.prompt.insert(request.prompt.end(), reference.ids.begin(),
                          reference.ids.end());  // several chunks
  request.max_tokens = kTokens;
  request.ignore_eos = true;
  request.sampling.temperature = 0.8F;
  request.sampling.seed = 7 + id;
  if (id == 2) {
    request.ignore_eos = false;
    request.stop_ids = {2};  // <|im_end|>
    request.grammar = {.kind = gen::GrammarKind::kRegex, .source = "([a-z]{1,7} ){400,}"};
  }
  return request;
}

std::vector<std::vector<gen::TokenId>> undisturbed(control::InstanceGenerator& generator,
                                                   const std::vector<Reference>& all) {
  std::vector<Answer> answers(kRequests);
  for (size_t i = 0; i < kRequests; ++i)
    REQUIRE(generator.submit(long_request_of(all[i], i + 1), answers[i].sink()));
  std::vector<std::vector<gen::TokenId>> tokens;
  for (Answer& answer : answers) tokens.push_back(answer.wait());
  return tokens;
}

/// Kills or stops a random rank at a random moment of a round; stopped ranks are found by their
/// beats and killed.
void disturb(control::InstanceGenerator& generator,
             std::mt19937& random,
             std::chrono::milliseconds round) {
  std::this_thread::sleep_for(round * static_cast<int>(random() % 100) / 100);
  const auto snapshot = generator.snapshot();
  const auto& rank = snapshot.ranks[random() % snapshot.ranks.size()];
  const int signal = random() % 3 == 0 ? SIGSTOP : SIGKILL;
  if (rank.pid != 0) ::kill(static_cast<pid_t>(rank.pid), signal);
}

/// Waits until the instance has seen its n-th loss and is whole again: two losses in one round
/// would be blamed on the round's requests, as they should be.
void wait_healed(control::InstanceGenerator& generator, uint64_t losses) {
  for (int i = 0; i < 600; ++i) {
    const auto snapshot = generator.snapshot();
    if (snapshot.lost_epochs >= losses && snapshot.state == control::InstanceState::kReady) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  FAIL("the instance did not become ready again");
}

void check_faults(const Layout& layout, int faults, unsigned seed) {
  CAPTURE(seed);
  const std::vector<Reference> all = references();
  const auto generator = start(layout);
  const auto began = std::chrono::steady_clock::now();
  const auto expected = undisturbed(*generator, all);
  const auto round = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  std::mt19937 random(seed);
  for (int fault = 0; fault < faults; ++fault) {
    CAPTURE(fault);
    std::vector<Answer> answers(kRequests);
    for (size_t i = 0; i < kRequests; ++i) {
      gen::Request request = long_request_of(all[i], i + 1);
      request.id = 100 + static_cast<gen::RequestId>(fault) * kRequests + i;
      REQUIRE(generator->submit(std::move(request), answers[i].sink()));
    }
    disturb(*generator, random, round);
    for (size_t i = 0; i < kRequests; ++i) CHECK(answers[i].wait() == expected[i]);
    wait_healed(*generator, static_cast<uint64_t>(fault) + 1);
  }
  generator->stop();
}

/// Answers that take a detour, such as behind thinking that is closed: generations that go on
/// behind tokens of their own, one of them bound by a grammar, and lose a rank.
void check_detours(const Layout& layout) {
  constexpr size_t kBefore = 12;
  const std::vector<Reference> all = references();
  const auto generator = start(layout);
  const auto whole = undisturbed(*generator, all);
  for (const bool is_killed : {false, true}) {
    CAPTURE(is_killed);
    std::vector<Answer> answers(kRequests);
    for (size_t i = 0; i < kRequests; ++i) {
      gen::Request request = long_request_of(all[i], i + 1);
      request.id = (is_killed ? 200 : 100) + i;
      const auto end = whole[i].begin() + static_cast<std::ptrdiff_t>(kBefore);
      request.emitted.assign(whole[i].begin(), end);
      REQUIRE(generator->submit(std::move(request), answers[i].sink()));
    }
    if (is_killed) {
      for (int wait = 0; wait < 2000 && answers[0].length() < 4; ++wait)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ::kill(static_cast<pid_t>(generator->snapshot().ranks.front().pid), SIGKILL);
    }
    for (size_t i = 0; i < kRequests; ++i) {
      std::vector<gen::TokenId> joined(whole[i].begin(),
                                       whole[i].begin() + static_cast<std::ptrdiff_t>(kBefore));
      for (const gen::TokenId id : answers[i].wait()) joined.push_back(id);
      CHECK(joined == whole[i]);
    }
  }
  wait_healed(*generator, 1);
  generator->stop();
}

}  // namespace

TEST_CASE("default model: an answer on a detour stays what it was when a rank is killed") {
  check_detours({.ranks = 2, .split = "tensor"});
}

TEST_CASE("default model: answers do not change when ranks are killed or stopped") {
  check_faults({.ranks = 2, .split = "tensor"}, 3, 1);
}

TEST_CASE("default model: answers do not change when ranks of MLX's ring are killed or stopped") {
  check_faults({.ranks = 2, .split = "tensor", .comm = "ring"}, 1, 5);
}

TEST_CASE("default model: answers do not change when ranks that mpirun started are killed" *
          doctest::skip(!has_mpi())) {
  check_faults({.ranks = 2, .split = "tensor", .comm = "mpi"}, 2, 6);
}

TEST_CASE("default model: thirty faults leave the answers unchanged" *
          doctest::skip(std::getenv("TANDEM_SLOW_TESTS") == nullptr)) {
  check_faults({.ranks = 1}, 6, 2);
  check_faults({.ranks = 2, .split = "tensor"}, 12, 3);
  check_faults({.ranks = 2, .split = "pipeline"}, 12, 4);
}

}  // namespace tandem::default_model
