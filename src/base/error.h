// What can go wrong in an expected way, as a value.
#pragma once

#include <string>

namespace tandem {

/// Kinds of expected failure. The HTTP status of each is decided once, in protocol/.
enum class ErrorCode {
  kInvalid,       // the caller's input is wrong
  kUnauthorized,  // no or wrong credentials
  kForbidden,
  kNotFound,
  kConflict,     // the thing is in another state than the call needs
  kTooLarge,     // over a configured bound
  kBusy,         // a queue is full: try again later
  kUnavailable,  // nothing is there to serve it now: try again later
  kCancelled,
  kDeadline,     // time ran out
  kUnsupported,  // known, not offered (yet)
  kIo,           // the operating system refused
  kCorrupt,      // data does not match its format or checksum
  kPeerLost,     // a peer closed, died or fell silent
  kInternal,     // a defect of ours, reported instead of crashing
};

/// An expected failure: a kind, a sentence that says what was expected, what came and what to do,
/// and the request field it is about (empty when none).
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string field = {};

  bool operator==(const Error&) const = default;
};

/// The kind's name as used on wires and in logs, such as "peer_lost".
const char* name(ErrorCode code);

}  // namespace tandem
