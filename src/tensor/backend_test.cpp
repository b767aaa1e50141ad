#include "tensor/backend.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace tandem::tensor {
namespace {

std::map<std::string, std::string> as_map(const BackendSettings& settings) {
  const auto variables = environment(settings);
  REQUIRE(variables);
  return {variables->begin(), variables->end()};
}

/// A port that was free a moment ago.
int free_port() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(socket_fd);
  return ntohs(address.sin_port);
}

/// Runs one skipped test case of this binary in a process of its own: MLX's threads do not survive
/// a fork, and a ring joins once a process.
pid_t run_case(const char* test_case, const std::string& hostfile, int rank) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  setenv("BACKEND_TEST_HOSTFILE", hostfile.c_str(), 1);
  setenv("BACKEND_TEST_RANK", std::to_string(rank).c_str(), 1);
  const std::string filter = std::string("--test-case=") + test_case;
  alarm(60);
  execl("/proc/self/exe", "/proc/self/exe", filter.c_str(), "--no-skip", "--minimal", nullptr);
  _exit(127);
}

int exit_code(pid_t pid) {
  int state = 0;
  waitpid(pid, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

}  // namespace

TEST_CASE("backends: settings become the variables that MLX reads") {
  CHECK(as_map({.backend = Backend::kRing, .rank = 1, .size = 2, .hostfile = "/h.json"}) ==
        std::map<std::string, std::string>{{"MLX_HOSTFILE", "/h.json"}, {"MLX_RANK", "1"}});
  CHECK(as_map({.backend = Backend::kJaccl,
                .rank = 2,
                .size = 4,
                .devices = "/d.json",
                .coordinator = "10.0.0.1:999",
                .jaccl_ring = true}) ==
        std::map<std::string, std::string>{{"MLX_IBV_DEVICES", "/d.json"},
                                           {"MLX_JACCL_COORDINATOR", "10.0.0.1:999"},
                                           {"MLX_JACCL_RING", "1"},
                                           {"MLX_RANK", "2"}});
  CHECK(as_map({.backend = Backend::kNccl, .rank = 3, .size = 4, .coordinator = "::1:12345"}) ==
        std::map<std::string, std::string>{{"NCCL_HOST_IP", "::1"},
                                           {"NCCL_PORT", "12345"},
                                           {"MLX_WORLD_SIZE", "4"},
                                           {"MLX_RANK", "3"}});
  CHECK(as_map({.backend = Backend::kMpi, .library = "/opt/libmpi.so"}) ==
        std::map<std::string, std::string>{{"MLX_MPI_LIBNAME", "/opt/libmpi.so"}});
}

TEST_CASE("backends: a missing or foreign setting is invalid and named") {
  const auto field = [](const BackendSettings& settings) {
    const auto result = environment(settings);
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::kInvalid);
    return result.error().field;
  };
  CHECK(field({.backend = Backend::kRing}) == "hostfile");
  CHECK(field({.backend = Backend::kRing, .hostfile = "/h", .library = "/l"}) == "library");
  CHECK(field({.backend = Backend::kJaccl, .devices = "/d"}) == "coordinator");
  CHECK(field({.backend = Backend::kJaccl, .coordinator = "a:1"}) == "devices");
  CHECK(field({.backend = Backend::kNccl, .coordinator = "host"}) == "coordinator");
  CHECK(field({.backend = Backend::kMpi, .hostfile = "/h"}) == "hostfile");
  CHECK(field({.backend = Backend::kMpi, .rank = 2, .size = 2}) == "rank");
}

TEST_CASE("backends: what this build or machine lacks is refused with what to do") {
  CHECK(available(Backend::kRing));
  const BackendSettings settings[] = {
      {.backend = Backend::kJaccl, .devices = "/none", .coordinator = "127.0.0.1:1"},
      {.backend = Backend::kNccl, .coordinator = "127.0.0.1:1"},
      {.backend = Backend::kMpi}};
  for (const BackendSettings& s : settings) {
    if (available(s.backend)) continue;  // then the hardware tier runs it
    CAPTURE(std::string(name(s.backend)));
    const auto group = start(s);
    REQUIRE(!group);
    CHECK(group.error().code == ErrorCode::kUnsupported);
    CHECK(group.error().message.find(name(s.backend)) != std::string::npos);
    CHECK(group.error().message.find("not available") != std::string::npos);
  }
}

TEST_CASE("backends: a ring that cannot read its hostfile says so") {
  const auto group = start({.backend = Backend::kRing, .size = 2, .hostfile = "/nowhere/hosts"});
  REQUIRE(!group);
  CHECK(group.error().code == ErrorCode::kInvalid);
  CHECK(group.error().message.find("[backend.ring]") == 0);
}

TEST_CASE("backends: two processes form a ring and sum") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("backend_test." + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string hostfile = folder / "hosts.json";
  std::ofstream(hostfile) << "[[\"127.0.0.1:" << free_port() << "\"], [\"127.0.0.1:" << free_port()
                          << "\"]]";
  const pid_t first = run_case("backends: one rank of a ring", hostfile, 0);
  const pid_t second = run_case("backends: one rank of a ring", hostfile, 1);
  CHECK(exit_code(first) == 0);
  CHECK(exit_code(second) == 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("backends: one rank of a ring" * doctest::skip()) {
  const char* hostfile = std::getenv("BACKEND_TEST_HOSTFILE");
  const char* rank = std::getenv("BACKEND_TEST_RANK");
  REQUIRE(hostfile != nullptr);
  REQUIRE(rank != nullptr);
  auto group = start({.backend = Backend::kRing,
                      .rank = static_cast<uint32_t>(std::atoi(rank)),
                      .size = 2,
                      .hostfile = hostfile});
  REQUIRE_MESSAGE(group, (group ? "" : group.error().message));
  const mx::array sum =
      mx::distributed::all_sum(mx::full({100}, static_cast<float>(group->rank() + 1)), *group);
  CHECK(mx::all(mx::equal(sum, mx::array(3.0F))).item<bool>());
}

}  // namespace tandem::tensor
