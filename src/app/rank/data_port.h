// DataPort: where this rank's tensors come in, kept over epochs, and the transport of each epoch.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "comm/socket.h"
#include "comm/transport.h"
#include "plan/frames.h"

namespace tandem::app {

/// Listens as long as it lives, so that the address said in Hello stays true. One thread.
class DataPort {
 public:
  /// Takes a free port of the host. Errors: kInvalid, kIo.
  static Result<DataPort> listen(const std::string& host);

  /// "host:port".
  const std::string& address() const { return address_; }

  /// Meets the group's other ranks: over shared memory, or over TCP, where groups of MLX's own
  /// backends meet too before they form. Errors: as comm::connect(); kIo.
  Result<std::unique_ptr<comm::Transport>> connect(const plan::Form& group,
                                                   std::chrono::milliseconds deadline) const;

 private:
  std::string address_;
  Fd socket_;
};

}  // namespace tandem::app
