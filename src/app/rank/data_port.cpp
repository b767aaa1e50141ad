#include "app/rank/data_port.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tandem::app {

Result<DataPort> DataPort::listen(const std::string& host) {
  const auto address = comm::tcp_address(host + ":0");
  if (!address) return address.error();
  auto socket = comm::listen_on(*address);
  if (!socket) return socket.error();
  DataPort port;
  port.socket_ = *std::move(socket);
  port.address_ = fmt::format("{}:{}", host, comm::local_port(port.socket_));
  return port;
}

Result<std::unique_ptr<comm::Transport>> DataPort::connect(
    const plan::Form& group, std::chrono::milliseconds deadline) const {
  comm::Options options{.kind = comm::Kind::kSharedMemory,
                        .rank = group.rank,
                        .size = group.size,
                        .epoch = group.epoch,
                        .name = group.shared_memory_name,
                        .addresses = group.data_addresses,
                        .secret = group.secret,
                        .connect_timeout = group.timeout,
                        .deadline = deadline};
  if (group.comm != plan::CommKind::kSharedMemory) {
    options.kind = comm::Kind::kTcp;
    // The transport closes what it is given, and the port outlives it.
    options.listen_fd = ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0);
    if (options.listen_fd < 0) {
      return Error{ErrorCode::kIo,
                   fmt::format("cannot share the data port: {}", std::strerror(errno))};
    }
  }
  return comm::connect(options);
}

}  // namespace tandem::app
