// What a server's HTTP side stands before: a text service, and what status, health and metrics tell
// of whatever makes its tokens.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "chat/service.h"
#include "protocol/metrics.h"

namespace tandem::app {

/// Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual chat::Service& service() = 0;

  /// What GET /v1/status tells as `instances`: a list.
  virtual nlohmann::ordered_json instances() const = 0;
  /// Why it cannot serve now; nothing when it can.
  virtual std::optional<std::string> unready_reason() const = 0;
  /// Why it will never serve; nothing while it may.
  virtual std::optional<std::string> end_reason() const = 0;
  virtual void write_metrics(protocol::MetricsText& out) const = 0;

  /// False when the time was over before.
  virtual bool wait_ready(std::chrono::milliseconds time) = 0;
  /// Takes no new requests.
  virtual void drain() = 0;
  /// True when the last request has ended after drain().
  virtual bool wait_drained(std::chrono::milliseconds time) = 0;
  /// Fails what is left: no request has an event after it.
  virtual void stop() = 0;
};

}  // namespace tandem::app
