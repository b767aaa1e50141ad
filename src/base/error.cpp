#include "base/error.h"

namespace tandem {

const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kUnauthorized:
      return "unauthorized";
    case ErrorCode::kForbidden:
      return "forbidden";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kTooLarge:
      return "too_large";
    case ErrorCode::kBusy:
      return "busy";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kDeadline:
      return "deadline";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kPeerLost:
      return "peer_lost";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace tandem
