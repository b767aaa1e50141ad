// The wires' shared state, and the routes that use it.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "chat/service.h"
#include "net/router.h"
#include "protocol/metrics.h"
#include "protocol/options.h"
#include "protocol/request_table.h"
#include "store/store.h"

namespace tandem::protocol {

namespace openai {
class ResponsesState;
}

/// Why instances cannot serve now; nothing when they can. Must not block.
using Probe = std::function<std::optional<std::string>()>;

/// Adds the route with and without /v1 before its pattern.
void add_v1(net::Router& router, net::Route route);

/// Outlives the server that serves its routes, and every request. Thread-safe.
class Api {
 public:
  /// `store`, which must outlive it, keeps what is to outlive the server; null: nothing is kept.
  Api(chat::Service& service,
      const Clock& clock,
      Options options,
      Probe probe = {},
      store::Store* store = nullptr);

  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  void add_routes(net::Router& router);

  /// What GET /v1/status tells besides the model and its requests: members of an object. Called
  /// from worker threads; set before there are requests.
  using StatusFields = std::function<nlohmann::ordered_json()>;
  void tell_status(StatusFields fields) { status_fields_ = std::move(fields); }
  const StatusFields& status_fields() const { return status_fields_; }

  chat::Service& service() { return service_; }
  const Options& options() const { return options_; }
  RequestTable& table() { return table_; }
  Metrics& metrics() { return metrics_; }
  const Clock& clock() const { return clock_; }
  store::Store* store() { return store_; }
  /// Null: nothing is kept.
  openai::ResponsesState* responses() { return responses_.get(); }

  /// Why this server is not ready; nothing when it is.
  std::optional<std::string> unready_reason() const;

 private:
  chat::Service& service_;
  const Clock& clock_;
  const Options options_;
  const Probe probe_;
  store::Store* const store_;
  Metrics metrics_;
  RequestTable table_;
  std::unique_ptr<openai::ResponsesState> responses_;
  StatusFields status_fields_;  // empty: nothing else
};

}  // namespace tandem::protocol
