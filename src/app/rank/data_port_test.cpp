#include "app/rank/data_port.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

namespace tandem::app {
namespace {

TEST_CASE("data port: the same ports carry one epoch after the other, over TCP and shared memory") {
  constexpr uint32_t kSize = 3;
  std::vector<DataPort> ports;
  std::vector<std::string> addresses;
  for (uint32_t rank = 0; rank < kSize; ++rank) {
    auto port = DataPort::listen("127.0.0.1");
    REQUIRE(port);
    addresses.push_back(port->address());
    ports.push_back(*std::move(port));
  }
  for (uint32_t epoch = 1; epoch <= 6; ++epoch) {
    CAPTURE(epoch);
    std::array<float, kSize> sums{};
    std::array<Error, kSize> errors{};
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kSize; ++rank) {
      threads.emplace_back([&, rank] {
        plan::Form group{.epoch = epoch, .rank = rank, .size = kSize};
        group.data_addresses = addresses;
        group.comm = epoch % 2 == 0 ? plan::CommKind::kTcp : plan::CommKind::kSharedMemory;
        group.shared_memory_name =
            "tandem-data-port-" + std::to_string(::getpid()) + "-" + std::to_string(epoch);
        group.secret.assign(32, static_cast<std::byte>(epoch));
        auto transport = ports[rank].connect(group, std::chrono::milliseconds(5000));
        if (!transport) {
          errors[rank] = transport.error();
          return;
        }
        sums[rank] = static_cast<float>(rank + 1);
        const Status done = (*transport)->all_sum(&sums[rank], 1, comm::Dtype::kFloat32);
        if (!done) errors[rank] = done.error();
      });
    }
    for (auto& thread : threads) thread.join();
    for (uint32_t rank = 0; rank < kSize; ++rank) {
      CHECK(errors[rank].message == "");
      CHECK(sums[rank] == 6.0F);
    }
  }
}

}  // namespace
}  // namespace tandem::app
