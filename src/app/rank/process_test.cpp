// The real executable: secret, exit codes, no orphan.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "app/rank/head_test.h"
#include "app/rank/rank.h"
#include "cluster/replay.h"
#include "engine/fake_runner.h"
#include "plan/plan_log.h"

extern char** environ;

namespace tandem::app {
namespace {

using namespace testing;

/// A tandem-rank process with its secret on descriptor 3; killed at the end of the test.
class RankProcess {
 public:
  explicit RankProcess(std::vector<std::string> arguments,
                       std::vector<std::byte> secret = control_secret()) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(::write(ends[1], secret.data(), secret.size()) == static_cast<ssize_t>(secret.size()));
    ::close(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], 3);
    arguments.insert(arguments.begin(), TANDEM_RANK_PATH);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    REQUIRE(::posix_spawn(&pid_, TANDEM_RANK_PATH, &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[0]);
  }
  ~RankProcess() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  /// The exit code; -1 when it had to be killed.
  int exit_code() {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return -1;
      std::this_thread::sleep_for(5ms);  // there is no wait with a deadline
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
};

std::vector<std::string> arguments(const TestHead& head, uint32_t rank, uint32_t size) {
  return {"--rank",    std::to_string(rank), "--size", std::to_string(size),
          "--control", head.address(),       "--fake"};
}

TEST_CASE("tandem-rank: two processes answer, log plans that a lone rank replays, and exit 0") {
  const auto log = std::filesystem::temp_directory_path() /
                   ("tandem-rank-" + std::to_string(::getpid()) + ".plans");
  TestHead head;
  auto with_log = arguments(head, 1, 2);
  with_log.insert(with_log.end(), {"--plan-log", log.string()});
  RankProcess leader(arguments(head, 0, 2));
  RankProcess follower(with_log);
  CHECK(head.hello(0).pid == static_cast<uint64_t>(leader.pid()));
  head.form(1, 2);
  head.send(0, plan::Submit{.epoch = 1, .request = request(5, 30)});
  CHECK(head.tokens(5).size() == 30);
  head.send(1, plan::Shutdown{});
  CHECK(follower.exit_code() == 0);
  head.send(0, plan::Shutdown{});
  CHECK(leader.exit_code() == 0);
  const auto recorded = plan::read_plan_log(log);
  std::filesystem::remove(log);
  REQUIRE(recorded);
  CHECK(recorded->records.size() >= 29);
  engine::FakeRunner lone({});
  CHECK(cluster::replay(*recorded, lone));
}

TEST_CASE("tandem-rank: a prompt's second run reuses the first one's pages unless told not to") {
  for (const bool on : {true, false}) {
    CAPTURE(on);
    TestHead head;
    auto words = arguments(head, 0, 1);
    words.insert(words.end(), {"--prefix-cache", on ? "on" : "off"});
    RankProcess rank(words);
    (void)head.hello(0);
    head.form(1, 1);
    for (const gen::RequestId id : {5U, 6U}) {
      head.send(0, plan::Submit{.epoch = 1, .request = request(id, 30)});
      CHECK(head.tokens(id).size() == 30);
    }
    const auto said = head.next<plan::Figures>(0, [](const plan::Figures& figures) {
      return figures.engine && figures.engine->totals.answer_tokens == 60;
    });
    REQUIRE(said);
    CHECK((said->engine->totals.reused_tokens > 0) == on);
  }
}

TEST_CASE("tandem-rank: exits with code 3 when its head goes, even in a step that never ends") {
  TestHead head;
  auto hanging = arguments(head, 0, 1);
  hanging.insert(hanging.end(), {"--fake-step-us", "4000000000"});
  RankProcess rank(hanging);
  (void)head.hello(0);
  head.form(1, 1);
  head.send(0, plan::Submit{.epoch = 1, .request = request(5, 30)});
  CHECK(head.next<plan::Beat>(0, [](const plan::Beat& b) { return b.busy; }));
  head.drop_all();
  CHECK(rank.exit_code() == static_cast<int>(RankExit::kHeadGone));
}

TEST_CASE("tandem-rank: a killed follower is a fault at rank 0 within a second") {
  TestHead head;
  RankProcess leader(arguments(head, 0, 2));
  RankProcess follower(arguments(head, 1, 2));
  (void)head.hello(0);
  (void)head.hello(1);
  head.form(1, 2);
  ::kill(follower.pid(), SIGKILL);
  const auto fault = head.next<plan::Fault>(0, [](const plan::Fault&) { return true; }, 5s);
  REQUIRE(fault);
  CHECK(fault->error.code == ErrorCode::kPeerLost);
}

TEST_CASE("tandem-rank: what it can see before loading is told to the head, then code 5") {
  for (const auto& [words, reason] :
       {std::pair<std::vector<std::string>, const char*>{{"--model", "/nowhere"}, "/nowhere"},
        {{"--model", "/nowhere", "--deterministic", "--path", "plain"}, "--deterministic holds"}}) {
    TestHead head;
    std::vector<std::string> all = {"--rank", "0", "--size", "1", "--control", head.address()};
    all.insert(all.end(), words.begin(), words.end());
    RankProcess rank(all);
    CHECK(head.hello(0).model_fingerprint.empty());
    const auto fault = head.next<plan::Fault>(0);
    REQUIRE(fault);
    CHECK(fault->error.message.find(reason) != std::string::npos);
    CHECK(rank.exit_code() == static_cast<int>(RankExit::kLoadFailed));
  }
}

TEST_CASE("tandem-rank: a bad command line or secret is code 2, no head is code 4") {
  TestHead head;
  CHECK(RankProcess({"--rank", "0"}).exit_code() == 2);
  auto both = arguments(head, 0, 1);
  both.insert(both.end(), {"--model", "x"});
  CHECK(RankProcess(both).exit_code() == 2);
  CHECK(RankProcess(arguments(head, 2, 2)).exit_code() == 2);
  CHECK(RankProcess(arguments(head, 0, 1), {std::byte{1}}).exit_code() == 2);
  const std::vector<std::byte> other(32, std::byte{9});
  CHECK(RankProcess(arguments(head, 0, 1), other).exit_code() == 4);
}

}  // namespace
}  // namespace tandem::app
