// Role: what a rank does in its group. Rank 0 leads, the others replicate.
#pragma once

#include <functional>
#include <optional>

#include "plan/frames.h"

namespace tandem::app {

/// Sends a frame to the head. Any thread.
using Say = std::function<void(const plan::Frame&)>;

/// Told by the control link's thread (all but the destructor and beat()); must not block it.
class Role {
 public:
  virtual ~Role() = default;  // ends the epoch and the role's threads

  /// Answered by Ready or Fault.
  virtual void form(const plan::Form& group) = 0;
  /// Answered by Aborted, when nothing of the epoch is left.
  virtual void abort(uint32_t epoch) = 0;
  virtual void submit(plan::Submit submit) = 0;
  virtual void cancel(const plan::Cancel& cancel) = 0;
  virtual void drain() = 0;
  /// Any thread; never waits for a step.
  virtual plan::Beat beat() const = 0;
  /// Of the engine; nothing where there is none. Any thread; never waits for a step.
  virtual std::optional<plan::EngineFigures> figures() const { return std::nullopt; }
};

}  // namespace tandem::app
