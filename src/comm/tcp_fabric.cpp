#include "comm/tcp_fabric.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "comm/meet.h"
#include "comm/wait_word.h"

namespace tandem::comm {
namespace {

constexpr std::chrono::microseconds kSocketSpin{50};
constexpr size_t kSocketPiece = size_t{256} << 10U;

bool try_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

}  // namespace

TcpFabric::TcpFabric(uint32_t rank,
                     uint32_t size,
                     uint32_t epoch,
                     std::map<uint32_t, Fd> sockets,
                     std::chrono::nanoseconds spin)
    : Fabric(rank, size, epoch), sockets_(size), spin_(spin) {
  for (auto& [peer, socket] : sockets) sockets_[peer] = std::move(socket);
}

Result<size_t> TcpFabric::write(uint32_t peer,
                                std::span<const std::byte> head,
                                std::span<const std::byte> body) {
  body = body.first(std::min(body.size(), kSocketPiece));
  std::array<iovec, 2> parts{
      iovec{.iov_base = const_cast<std::byte*>(head.data()), .iov_len = head.size()},
      iovec{.iov_base = const_cast<std::byte*>(body.data()), .iov_len = body.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t sent = sendmsg(sockets_[peer].get(), &message, kNoSignal | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (try_later()) return size_t{0};
  return gone_peer(peer);
}

Result<size_t> TcpFabric::read(uint32_t peer,
                               std::span<std::byte> head,
                               std::span<std::byte> body) {
  std::array<iovec, 2> parts{iovec{.iov_base = head.data(), .iov_len = head.size()},
                             iovec{.iov_base = body.data(), .iov_len = body.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t got = recvmsg(sockets_[peer].get(), &message, MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got < 0 && try_later()) return size_t{0};
  return gone_peer(peer);
}

void TcpFabric::wait(uint32_t /*ticket*/,
                     std::span<const Interest> interests,
                     std::chrono::milliseconds longest) {
  std::vector<pollfd> waits;
  for (const Interest& interest : interests) {
    const int events = (interest.read ? POLLIN : 0) | (interest.write ? POLLOUT : 0);
    waits.push_back(
        {.fd = sockets_[interest.peer].get(), .events = static_cast<short>(events), .revents = 0});
  }
  poll(waits.data(), waits.size(), static_cast<int>(longest.count()));
}

void TcpFabric::tell(Fault fault) {
  for (uint32_t peer = 0; peer < size(); ++peer) {
    if (!sockets_[peer]) continue;
    if (!link(peer).open) {
      const Tag tag{.epoch = epoch(), .op = Op::kFault, .bytes = static_cast<uint64_t>(fault)};
      ::send(sockets_[peer].get(), &tag, sizeof tag, kNoSignal | MSG_DONTWAIT);
    }
    shutdown(sockets_[peer].get(), SHUT_WR);
  }
}

void TcpFabric::interrupt() {
  for (const Fd& socket : sockets_) {
    if (socket) shutdown(socket.get(), SHUT_RDWR);
  }
}

Result<std::unique_ptr<Fabric>> connect_tcp(const Options& options, TimePoint until) {
  Fd listener(options.listen_fd);
  if (options.addresses.size() != options.size) {
    return Error{.code = ErrorCode::kInvalid,
                 .message = fmt::format("[comm] {} addresses for {} ranks",
                                        options.addresses.size(), options.size)};
  }
  Meeting meeting;
  meeting.self = {.kind = static_cast<uint16_t>(options.kind),
                  .epoch = options.epoch,
                  .rank = options.rank,
                  .size = options.size};
  meeting.secret = options.secret;
  meeting.until = until;
  const std::string& own = options.addresses[options.rank];
  uint32_t neighbours = 0;
  for (uint32_t peer = 0; peer < options.size; ++peer) {
    if (host_of(options.addresses[peer]) == host_of(own)) ++neighbours;
    if (peer > options.rank) meeting.accepts.push_back(peer);
    if (peer >= options.rank) continue;
    auto address = tcp_address(options.addresses[peer]);
    if (!address) return address.error();
    meeting.dials.push_back(
        {.rank = peer, .address = *std::move(address), .where = options.addresses[peer]});
  }
  if (!listener && !meeting.accepts.empty()) {
    const auto address = tcp_address(own);
    if (!address) return address.error();
    auto bound = listen_on(*address);
    if (!bound) return bound.error();
    listener = *std::move(bound);
  }
  if (!meeting.accepts.empty()) meeting.listener = &listener;
  auto sockets = meet(meeting);
  if (!sockets) return sockets.error();
  const auto spin = neighbours > usable_cores() ? std::chrono::nanoseconds{0} : kSocketSpin;
  return std::unique_ptr<Fabric>(std::make_unique<TcpFabric>(
      options.rank, options.size, options.epoch, *std::move(sockets), spin));
}

}  // namespace tandem::comm
