#include <numeric>

#include "comm/mesh.h"
#include "comm/shm_fabric.h"
#include "comm/tcp_fabric.h"
#include "comm/transport.h"

namespace tandem::comm {
namespace {

/// A group of one moves nothing.
class LoneFabric final : public Fabric {
 public:
  explicit LoneFabric(uint32_t epoch) : Fabric(0, 1, epoch) {}

  Result<size_t> write(uint32_t, std::span<const std::byte>, std::span<const std::byte>) override {
    return size_t{0};
  }
  Result<size_t> read(uint32_t, std::span<std::byte>, std::span<std::byte>) override {
    return size_t{0};
  }
  uint32_t ticket() override { return 0; }
  void wait(uint32_t, std::span<const Interest>, std::chrono::milliseconds) override {}
  std::chrono::nanoseconds spin() const override { return std::chrono::nanoseconds{0}; }
  void tell(Fault) override {}
  void interrupt() override {}
};

Result<std::unique_ptr<Fabric>> connect_fabric(const Options& options, TimePoint until) {
  if (options.size == 1) return std::unique_ptr<Fabric>(new LoneFabric(options.epoch));
  if (options.kind == Kind::kTcp) return connect_tcp(options, until);
  return connect_shm(options, until);
}

}  // namespace

Result<std::unique_ptr<Transport>> connect(const Options& options) {
  if (options.rank >= options.size || (options.size > 1 && options.secret.empty())) {
    return Error{.code = ErrorCode::kInvalid,
                 .message = fmt::format("[comm] rank {} of {}, secret of {} bytes", options.rank,
                                        options.size, options.secret.size())};
  }
  const SteadyClock clock;
  const TimePoint until = clock.now() + options.connect_timeout;
  auto fabric = connect_fabric(options, until);
  if (!fabric) return fabric.error();
  std::vector<uint32_t> members(options.size);
  std::iota(members.begin(), members.end(), 0U);
  auto mesh = std::make_unique<Mesh>(std::shared_ptr<Fabric>(*std::move(fabric)),
                                     std::move(members), 0, options.connect_timeout);
  if (auto status = mesh->barrier(); !status) return status.error();
  mesh->set_deadline(options.deadline);
  return std::unique_ptr<Transport>(std::move(mesh));
}

}  // namespace tandem::comm
