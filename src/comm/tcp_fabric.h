// Fabric over TCP: one socket between every two ranks.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "comm/fabric.h"
#include "comm/socket.h"
#include "comm/transport.h"

namespace tandem::comm {

class TcpFabric final : public Fabric {
 public:
  TcpFabric(uint32_t rank,
            uint32_t size,
            uint32_t epoch,
            std::map<uint32_t, Fd> sockets,
            std::chrono::nanoseconds spin);

  Result<size_t> write(uint32_t peer,
                       std::span<const std::byte> head,
                       std::span<const std::byte> body) override;
  Result<size_t> read(uint32_t peer, std::span<std::byte> head, std::span<std::byte> body) override;
  uint32_t ticket() override { return 0; }  // poll() looks at the links itself
  void wait(uint32_t ticket,
            std::span<const Interest> interests,
            std::chrono::milliseconds longest) override;
  std::chrono::nanoseconds spin() const override { return spin_; }
  void tell(Fault fault) override;
  void interrupt() override;

 private:
  std::vector<Fd> sockets_;
  std::chrono::nanoseconds spin_;
};

/// Every rank dials the ranks below it and accepts those above.
Result<std::unique_ptr<Fabric>> connect_tcp(const Options& options, TimePoint until);

}  // namespace tandem::comm
