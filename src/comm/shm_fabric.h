// Fabric over shared memory: a ring for each direction of each pair, a bell to sleep on for each
// rank, and a socket for each pair that says when the other process is gone.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "comm/fabric.h"
#include "comm/segment.h"
#include "comm/socket.h"
#include "comm/transport.h"

namespace tandem::comm {

class ShmFabric final : public Fabric {
 public:
  /// `owners` holds a socket to each other rank that its process keeps open while it lives.
  ShmFabric(uint32_t rank,
            uint32_t size,
            uint32_t epoch,
            std::shared_ptr<Segment> segment,
            std::map<uint32_t, Fd> owners);

  Result<size_t> write(uint32_t peer,
                       std::span<const std::byte> head,
                       std::span<const std::byte> body) override;
  Result<size_t> read(uint32_t peer, std::span<std::byte> head, std::span<std::byte> body) override;
  uint32_t ticket() override;
  void wait(uint32_t ticket,
            std::span<const Interest> interests,
            std::chrono::milliseconds longest) override;
  std::chrono::nanoseconds spin() const override { return spin_; }
  void tell(Fault fault) override;
  Fault told() const override;
  void interrupt() override { tell(Fault::kPeerLost); }

 private:
  void ring_bell(uint32_t rank);
  void look_for_the_dead();

  std::shared_ptr<Segment> segment_;
  std::map<uint32_t, Fd> owners_;
  std::vector<bool> gone_;
  std::chrono::nanoseconds spin_;
  SteadyClock clock_;
  TimePoint looked_{};
};

/// Meets the other ranks of this host under options.name. Rank 0 makes the memory.
Result<std::unique_ptr<Fabric>> connect_shm(const Options& options, TimePoint until);

}  // namespace tandem::comm
