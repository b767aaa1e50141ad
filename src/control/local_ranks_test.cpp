#include "control/local_ranks.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/environment_test.h"

namespace tandem::control {
namespace {

/// Collects exits.
class Exits {
 public:
  LocalRanks::OnExit handler() {
    return [this](Incarnation who, const std::string& how) {
      const std::lock_guard lock(mutex_);
      seen_.emplace_back(who, how);
      changed_.notify_all();
    };
  }
  std::vector<std::pair<Incarnation, std::string>> wait(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return seen_.size() >= count; });
    return seen_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<Incarnation, std::string>> seen_;
};

/// Stands in for mpirun: writes its arguments and, of the first --secret-file, what it holds.
struct FakeMpirun {
  std::filesystem::path folder;
  FakeMpirun()
      : folder(std::filesystem::temp_directory_path() /
               ("local_ranks_test." + std::to_string(::getpid()))) {
    std::filesystem::create_directory(folder);
    std::ofstream(program()) << "#!/bin/sh\necho \"$*\" >" << (folder / "new").string()
                             << "\nuntil [ \"$1\" = --secret-file ]; do shift; done\ncat \"$2\" >"
                             << (folder / "secret").string() << "\nmv " << (folder / "new").string()
                             << " " << (folder / "arguments").string() << "\nexec sleep 60\n";
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
  }
  ~FakeMpirun() { std::filesystem::remove_all(folder); }
  std::string program() const { return folder / "mpirun"; }
  std::string read(const char* name) const {
    for (int i = 0; i < 1000 && !std::filesystem::exists(folder / "arguments"); ++i) ::usleep(5000);
    std::ifstream in(folder / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_CASE("local ranks: mpirun starts all ranks at once, and they end together") {
  const FakeMpirun mpirun;
  Exits exits;
  LocalRanks ranks(
      {.program = "tandem-rank",
       .arguments =
           [](uint32_t rank) { return std::vector<std::string>{"--rank", std::to_string(rank)}; },
       .secret = std::vector<std::byte>(3, std::byte{'s'}),
       .output_path = {},
       .mpirun = mpirun.program(),
       .ranks = 2},
      exits.handler());
  REQUIRE(ranks.spawn({.rank = 1, .number = 1}));
  CHECK(!ranks.find(1, 5));  // nothing runs before the last one is to start
  REQUIRE(ranks.spawn({.rank = 0, .number = 4}));
  CHECK(ranks.find(1, 5) == Incarnation{.rank = 1, .number = 1});
  CHECK(ranks.find(0, 6) == Incarnation{.rank = 0, .number = 4});
  CHECK(mpirun.read("secret") == "sss");
  const std::string arguments = mpirun.read("arguments");
  CHECK(arguments.find("-n 1 tandem-rank --rank 0 --secret-file") != std::string::npos);
  CHECK(arguments.find(" : -n 1 tandem-rank --rank 1 --secret-file") != std::string::npos);
  const size_t at = arguments.find("--secret-file ") + 14;
  const std::string secret_file = arguments.substr(at, arguments.find(' ', at) - at);
  CHECK(std::filesystem::exists(secret_file));
  ranks.kill({.rank = 1, .number = 1});
  const auto seen = exits.wait(2);
  REQUIRE(seen.size() == 2);
  for (const auto& [who, how] : seen) {
    CHECK(how.find("signal 9") != std::string::npos);
    ranks.forget(who);
  }
  CHECK(!std::filesystem::exists(secret_file));
}

TEST_CASE("local ranks: one that waits for the others under mpirun can be ended too") {
  Exits exits;
  LocalRanks ranks({.program = "tandem-rank",
                    .arguments = [](uint32_t) { return std::vector<std::string>{}; },
                    .secret = {},
                    .output_path = {},
                    .mpirun = "/nowhere/mpirun",
                    .ranks = 2},
                   exits.handler());
  REQUIRE(ranks.spawn({.rank = 0, .number = 1}));
  ranks.kill({.rank = 0, .number = 1});
  CHECK(exits.wait(1).size() == 1);
  REQUIRE(ranks.spawn({.rank = 0, .number = 2}));
  CHECK(!ranks.spawn({.rank = 1, .number = 1}));  // there is no such program
  const auto seen = exits.wait(2);
  REQUIRE(seen.size() == 2);
  CHECK(seen[1].first == Incarnation{.rank = 0, .number = 2});
}

TEST_CASE(
    "local ranks: without room for the secret no rank starts under mpirun, and each is told") {
  const FakeMpirun mpirun;
  for (const char* folder : {"/proc", "/nowhere"}) {  // takes no files; is none
    CAPTURE(folder);
    const TestVariable unwritable("TMPDIR", folder);
    Exits exits;
    LocalRanks ranks({.program = "tandem-rank",
                      .arguments = [](uint32_t) { return std::vector<std::string>{}; },
                      .secret = std::vector<std::byte>(3),
                      .output_path = {},
                      .mpirun = mpirun.program(),
                      .ranks = 3},
                     exits.handler());
    REQUIRE(ranks.spawn({.rank = 0, .number = 1}));
    REQUIRE(ranks.spawn({.rank = 2, .number = 5}));
    const Status last = ranks.spawn({.rank = 1, .number = 2});
    REQUIRE(!last);
    CHECK(last.error().code == ErrorCode::kIo);
    const auto seen = exits.wait(2);
    REQUIRE(seen.size() == 2);
    CHECK(seen[0].first == Incarnation{.rank = 0, .number = 1});
    CHECK(seen[1].first == Incarnation{.rank = 2, .number = 5});
    CHECK(!ranks.find(0, 1));
  }
}

}  // namespace
}  // namespace tandem::control
