// MLX's ring after a peer's death: an error, and a new ring in the same process.
#include <doctest/doctest.h>
#include <mlx/distributed/distributed_impl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "host_op.h"

namespace probe {
namespace {

namespace fs = std::filesystem;

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

std::string make_hostfile(const fs::path& folder, const std::string& file) {
  const std::string path = folder / file;
  std::ofstream(path) << "[[\"127.0.0.1:" << free_port() << "\"], [\"127.0.0.1:" << free_port()
                      << "\"]]";
  return path;
}

/// Starts this binary again as one rank: MLX's threads do not survive a fork.
pid_t start_rank(const std::string& first, const std::string& second, const char* role) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  setenv("PROBE_FIRST", first.c_str(), 1);
  setenv("PROBE_SECOND", second.c_str(), 1);
  setenv("PROBE_ROLE", role, 1);
  alarm(50);
  execl("/proc/self/exe", "/proc/self/exe", "--test-case=ring: one rank", "--no-skip", nullptr);
  _exit(127);
}

mx::distributed::Group join(const char* hostfile, int rank) {
  setenv("MLX_HOSTFILE", hostfile, 1);
  setenv("MLX_RANK", std::to_string(rank).c_str(), 1);
  return mx::distributed::init(true, "ring");
}

float sum(const mx::distributed::Group& group) {
  return mx::distributed::all_sum(array(1.0F), group).item<float>();
}

/// Rank 0 lives through two groups.
void survive(const char* first, const char* second) {
  signal(SIGPIPE, SIG_IGN);  // the next send after a loss would end the process
  {
    const mx::distributed::Group group = join(first, 0);
    REQUIRE(sum(group) == 2.0F);
    bool lost = false;
    try {
      (void)sum(group);  // the peer is dead or dies now
    } catch (const std::exception&) {
      lost = true;
    }
    CHECK(lost);
  }
  mx::distributed::clear_backends();
  CHECK((array(1.0F) + array(1.0F)).item<float>() == 2.0F);  // weights and computing are unharmed
  const mx::distributed::Group group = join(second, 0);
  CHECK(sum(group) == 2.0F);
}

}  // namespace

TEST_CASE("ring: a dead peer is an exception, and the process joins a new ring afterwards") {
  const fs::path folder = fs::temp_directory_path() / ("ring_probe." + std::to_string(getpid()));
  fs::create_directory(folder);
  const std::string first = make_hostfile(folder, "first.json");
  const std::string second = make_hostfile(folder, "second.json");
  const pid_t survivor = start_rank(first, second, "survivor");
  const pid_t victim = start_rank(first, second, "victim");
  int state = 0;
  waitpid(victim, &state, 0);
  CHECK((WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL));
  const pid_t successor = start_rank(first, second, "successor");
  for (const pid_t pid : {survivor, successor}) {
    waitpid(pid, &state, 0);
    CHECK((WIFEXITED(state) && WEXITSTATUS(state) == 0));
  }
  fs::remove_all(folder);
}

TEST_CASE("ring: one rank" * doctest::skip()) {
  const char* first = std::getenv("PROBE_FIRST");
  const char* second = std::getenv("PROBE_SECOND");
  const char* role = std::getenv("PROBE_ROLE");
  REQUIRE(role != nullptr);
  if (std::string(role) == "survivor") survive(first, second);
  if (std::string(role) == "successor") CHECK(sum(join(second, 1)) == 2.0F);
  if (std::string(role) == "victim") {
    CHECK(sum(join(first, 1)) == 2.0F);
    raise(SIGKILL);
  }
}

TEST_CASE("ring: a group may be made from an implementation of our own") {
  struct Lone final : mx::distributed::detail::GroupImpl {
    mx::Stream communication_stream(mx::StreamOrDevice s) override {
      return mx::to_stream(s, mx::Device::cpu);
    }
    int rank() override { return 1; }
    int size() override { return 2; }
    std::shared_ptr<GroupImpl> split(int, int) override { return nullptr; }
    void all_sum(const array& in, array& out, mx::Stream stream) override {
      mx::cpu::get_command_encoder(stream).dispatch(
          [from = in.data<float>(), to = out.data<float>(), n = in.size()] {
            for (size_t i = 0; i < n; ++i) to[i] = from[i] * 2;
          });
    }
    void all_gather(const array&, array&, mx::Stream) override {}
    void send(const array&, int, mx::Stream) override {}
    void recv(array&, int, mx::Stream) override {}
    void all_max(const array&, array&, mx::Stream) override {}
    void all_min(const array&, array&, mx::Stream) override {}
    void sum_scatter(const array&, array&, mx::Stream) override {}
  };
  const mx::distributed::Group group(std::make_shared<Lone>());
  CHECK(group.rank() == 1);
  CHECK(mx::distributed::all_sum(array(3.0F), group).item<float>() == 6.0F);
}

}  // namespace probe
