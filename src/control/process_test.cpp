#include "control/process.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

namespace tandem::control {
namespace {

using namespace std::chrono_literals;

ProcessOptions shell(const std::string& script) {
  return {.program = "/bin/sh", .arguments = {"-c", script}};
}

ExitStatus run(ProcessOptions options) {
  std::promise<ExitStatus> ended;
  auto process =
      Process::spawn(std::move(options), [&](ExitStatus status) { ended.set_value(status); });
  REQUIRE(process.has_value());
  REQUIRE((*process)->wait_for(10s));
  return ended.get_future().get();
}

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

class TempFile {
 public:
  TempFile() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem-process-XXXXXX").string();
    ::close(::mkstemp(name.data()));
    path_ = name;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  const std::string& path() const { return path_; }
  std::string content() const {
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

/// Polls a condition that another process makes true.
bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    ::usleep(10'000);
  }
  return false;
}

TEST_CASE("process: the exit code and the killing signal are reported in words") {
  CHECK(run(shell("exit 3")) == ExitStatus{.code = 3});
  CHECK(run(shell("kill -SEGV $$")) == ExitStatus{.signal = SIGSEGV});
  CHECK(describe({.code = 3}) == "exited with code 3");
  CHECK(describe({.signal = SIGKILL}) == "was killed by signal 9 (Killed)");
}

TEST_CASE("process: a program that does not exist is an error that names it") {
  const auto process = Process::spawn({.program = "/no/such/program"});
  REQUIRE(!process.has_value());
  CHECK(process.error().code == ErrorCode::kIo);
  CHECK(process.error().message.find("/no/such/program: No such file") != std::string::npos);
}

TEST_CASE("process: the secret arrives at its descriptor and nowhere else") {
  const TempFile file;
  ProcessOptions options = shell("cat <&3; echo .; ls /proc/self/fd | wc -l");
  for (const char c : std::string("s3cret")) options.secret.push_back(static_cast<std::byte>(c));
  options.output_path = file.path();
  const int stray = ::dup(0);  // inheritable: the child must not see it
  CHECK(run(options) == ExitStatus{});
  ::close(stray);
#ifdef __linux__
  CHECK(file.content() == "s3cret.\n5\n");  // 0, 1, 2, 3 and the listing's own
#endif
  options.secret.resize(Process::kMaxSecretBytes + 1);
  CHECK(Process::spawn(options).error().code == ErrorCode::kInvalid);
}

TEST_CASE("process: a kill reaches the whole group, and nobody stays behind as a zombie") {
  const TempFile file;
  ProcessOptions options = shell("sleep 100 & echo $!; wait");
  options.output_path = file.path();
  auto process = Process::spawn(options);
  REQUIRE(process.has_value());
  REQUIRE(eventually([&] { return !file.content().empty(); }));
  const pid_t grandchild = std::stoi(file.content());
  CHECK(is_alive(grandchild));
  (*process)->kill(SIGKILL);
  REQUIRE((*process)->wait_for(10s));
  CHECK(!is_alive((*process)->pid()));
  CHECK(eventually([&] { return !is_alive(grandchild); }));
  (*process)->kill(SIGKILL);  // the pid is no longer ours: nothing may happen
}

TEST_CASE("process: what a child leaves running is killed when it ends") {
  const TempFile file;
  ProcessOptions options = shell("sleep 100 & echo $!");
  options.output_path = file.path();
  CHECK(run(options) == ExitStatus{});
  const pid_t grandchild = std::stoi(file.content());
  CHECK(eventually([&] { return !is_alive(grandchild); }));
}

TEST_CASE("process: a stopped child ends with its owner object") {
  pid_t pid = 0;
  {
    auto process = Process::spawn(shell("sleep 100"));
    REQUIRE(process.has_value());
    pid = (*process)->pid();
    (*process)->kill(SIGSTOP);
    CHECK(!(*process)->wait_for(10ms));
  }
  CHECK(!is_alive(pid));
}

#ifdef __linux__
TEST_CASE("process: a child dies with its parent, even when the parent is killed") {
  const TempFile file;
  const pid_t parent = ::fork();
  if (parent == 0) {
    ProcessOptions options = shell("echo $$; sleep 100");
    options.output_path = file.path();
    auto process = Process::spawn(options);
    ::pause();
    ::_exit(process.has_value() ? 0 : 1);
  }
  REQUIRE(eventually([&] { return !file.content().empty(); }));
  const pid_t child = std::stoi(file.content());
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  CHECK(eventually([&] { return !is_alive(child); }));
}
#endif

}  // namespace
}  // namespace tandem::control
