// The contract between what serves text (chat, protocols) and what makes tokens (engine, or a link
// to one).
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "gen/event.h"
#include "gen/request.h"

namespace tandem::gen {

/// Receives a request's events in order, on the generator's thread. Must not block, throw, or call
/// back into the generator's submit().
using Sink = std::function<void(Event)>;

/// What is loaded: fixed while the generator lives.
struct Limits {
  uint32_t vocab = 0;           // size of a logits row
  uint32_t max_context = 0;     // prompt plus answer, tokens
  bool chooses_blocks = false;  // of keys, so that Request::index_reuse has a meaning
  uint32_t hidden = 0;          // numbers of an Embedding

  bool operator==(const Limits&) const = default;
};

/// Makes tokens. Thread-safe.
class Generator {
 public:
  virtual ~Generator() = default;

  /// Takes a request. Refused (no event follows): kInvalid, kTooLarge (over max_context), kBusy
  /// (queue full), kUnavailable (draining or no instance), kConflict (id in use). Accepted: exactly
  /// one last event follows.
  virtual Status submit(Request request, Sink sink) = 0;

  /// Ends a request at the next step with Cancelled, unless another last event is on its way.
  /// Unknown ids are ignored. What was computed stays reusable.
  virtual void cancel(RequestId id) = 0;

  virtual Limits limits() const = 0;
};

}  // namespace tandem::gen
