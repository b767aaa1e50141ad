#include <thread>

#include "comm/meet.h"
#include "comm/shm_fabric.h"

namespace tandem::comm {
namespace {

constexpr std::chrono::milliseconds kNameRetry{20};

/// The name may still be held by the group before this one, which is being torn down.
Result<Fd> listen_at(const std::string& name, TimePoint until) {
  const SteadyClock clock;
  while (true) {
    auto listener = listen_on(local_address(name));
    if (listener || clock.now() >= until) return listener;
    std::this_thread::sleep_for(kNameRetry);
  }
}

/// Descriptors in the order in which each rank receives them: the memory, then a socket to every
/// rank but itself and rank 0, whose socket it has.
Status pass_out(const Segment& segment, const std::map<uint32_t, Fd>& sockets) {
  std::map<uint32_t, std::map<uint32_t, Fd>> pairs;
  for (const auto& [low, low_socket] : sockets) {
    for (const auto& [high, high_socket] : sockets) {
      if (low >= high) continue;
      auto ends = socket_pair();
      if (!ends) return ends.error();
      pairs[low][high] = std::move(ends->first);
      pairs[high][low] = std::move(ends->second);
    }
  }
  for (const auto& [rank, socket] : sockets) {
    std::vector<int> fds{segment.fd()};
    for (const auto& [peer, end] : pairs[rank]) fds.push_back(end.get());
    if (auto status = send_fds(socket, fds); !status) return status;
  }
  return {};
}

Result<std::unique_ptr<Fabric>> lead(const Options& options, Meeting meeting) {
  auto listener = listen_at(options.name, meeting.until);
  if (!listener) return listener.error();
  meeting.listener = &*listener;
  for (uint32_t rank = 1; rank < options.size; ++rank) meeting.accepts.push_back(rank);
  auto sockets = meet(meeting);
  if (!sockets) return sockets.error();
  auto segment = Segment::create(options.size);
  if (!segment) return segment.error();
  if (auto status = pass_out(**segment, *sockets); !status) return status.error();
  return std::unique_ptr<Fabric>(std::make_unique<ShmFabric>(
      0, options.size, options.epoch, *std::move(segment), *std::move(sockets)));
}

Result<std::unique_ptr<Fabric>> follow(const Options& options, Meeting meeting) {
  meeting.dials.push_back(
      {.rank = 0, .address = local_address(options.name), .where = options.name});
  auto sockets = meet(meeting);
  if (!sockets) return sockets.error();
  auto fds = recv_fds((*sockets)[0], options.size - 1, meeting.until);
  if (!fds) return fds.error();
  auto segment = Segment::map(std::move(fds->front()), options.size);
  if (!segment) return segment.error();
  size_t next = 1;
  for (uint32_t peer = 1; peer < options.size; ++peer) {
    if (peer != options.rank) (*sockets)[peer] = std::move((*fds)[next++]);
  }
  return std::unique_ptr<Fabric>(std::make_unique<ShmFabric>(
      options.rank, options.size, options.epoch, *std::move(segment), *std::move(sockets)));
}

}  // namespace

Result<std::unique_ptr<Fabric>> connect_shm(const Options& options, TimePoint until) {
  if (options.size > Segment::kMostRanks) {
    return Error{.code = ErrorCode::kInvalid,
                 .message = fmt::format("[comm] {} ranks asked for, at most {} share memory",
                                        options.size, Segment::kMostRanks)};
  }
  Meeting meeting;
  meeting.self = {.kind = static_cast<uint16_t>(options.kind),
                  .epoch = options.epoch,
                  .rank = options.rank,
                  .size = options.size};
  meeting.secret = options.secret;
  meeting.until = until;
  return options.rank == 0 ? lead(options, std::move(meeting))
                           : follow(options, std::move(meeting));
}

}  // namespace tandem::comm
