// Times collectives between ranks of this machine: transport_bench [ranks], over both kinds.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "comm/socket.h"
#include "comm/transport.h"

namespace tandem::comm {
namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  const char* what;
  size_t rows;
  size_t width;
  int repeats;
};

constexpr Case kCases[] = {{"all_sum, one row", 1, 2048, 20000},
                           {"all_sum, 8 rows", 8, 2048, 5000},
                           {"all_sum, 512 rows", 512, 2048, 100}};

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

void report(const char* kind, const char* what, uint32_t size, std::vector<double> times) {
  std::ranges::sort(times);
  fmt::print("{:<14} {:<20} {} ranks: median {:8.1f} us, p90 {:8.1f} us\n", kind, what, size,
             times[times.size() / 2], times[times.size() * 9 / 10]);
}

int measure(Transport& group, const char* kind) {
  for (const Case& c : kCases) {
    std::vector<float> data(c.rows * c.width, 0.0F);
    std::vector<double> times;
    for (int i = 0; i < c.repeats; ++i) {
      const auto begin = Clock::now();
      if (!group.all_sum(data.data(), data.size(), Dtype::kFloat32)) return 1;
      times.push_back(microseconds(Clock::now() - begin));
    }
    if (group.rank() == 0) report(kind, c.what, group.size(), times);
  }
  std::vector<float> data(512 * 2048);
  std::vector<size_t> begins;
  for (uint32_t rank = 0; rank <= group.size(); ++rank) begins.push_back(512 * rank / group.size());
  std::vector<double> times;
  for (int i = 0; i < 100; ++i) {
    const auto begin = Clock::now();
    std::vector<float> out((begins[group.rank() + 1] - begins[group.rank()]) * 2048);
    if (!group.reduce_scatter(data.data(), 2048, begins, out.data())) return 1;
    times.push_back(microseconds(Clock::now() - begin));
  }
  if (group.rank() == 0) report(kind, "reduce_scatter, 512", group.size(), times);
  return 0;
}

int run(Kind kind, uint32_t size) {
  std::vector<Fd> listeners;
  std::vector<std::string> addresses;
  for (uint32_t rank = 0; rank < size; ++rank) {
    listeners.push_back(*listen_on(*tcp_address("127.0.0.1:0")));
    addresses.push_back(fmt::format("127.0.0.1:{}", local_port(listeners.back())));
  }
  const std::string name = fmt::format("transport_bench.{}", getpid());
  std::vector<pid_t> children;
  for (uint32_t rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    auto group = connect({.kind = kind,
                          .rank = rank,
                          .size = size,
                          .name = name,
                          .addresses = addresses,
                          .listen_fd = kind == Kind::kTcp ? dup(listeners[rank].get()) : -1,
                          .secret = std::vector<std::byte>(32)});
    const int failed = group ? measure(**group, kind == Kind::kTcp ? "tcp" : "shared memory") : 1;
    std::fflush(stdout);
    _exit(failed);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int state = 0;
    waitpid(child, &state, 0);
    if (state != 0) failed = 1;
  }
  return failed;
}

}  // namespace
}  // namespace tandem::comm

int main(int argc, char** argv) {
  const auto size = argc > 1 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 2U;
  using tandem::comm::Kind;
  return tandem::comm::run(Kind::kSharedMemory, size) + tandem::comm::run(Kind::kTcp, size);
}
