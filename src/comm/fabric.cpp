#include "comm/fabric.h"

namespace tandem::comm {

Fault to_fault(ErrorCode code) {
  if (code == ErrorCode::kCorrupt) return Fault::kCorrupt;
  if (code == ErrorCode::kDeadline) return Fault::kDeadline;
  return Fault::kPeerLost;
}

ErrorCode to_code(Fault fault) {
  if (fault == Fault::kCorrupt) return ErrorCode::kCorrupt;
  if (fault == Fault::kDeadline) return ErrorCode::kDeadline;
  return ErrorCode::kPeerLost;
}

Error gone_peer(uint32_t peer) {
  return {.code = ErrorCode::kPeerLost, .message = fmt::format("[comm] rank {} is gone", peer)};
}

}  // namespace tandem::comm
