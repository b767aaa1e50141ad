#include "app/front.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "app/version.h"

namespace tandem::app {

Result<std::unique_ptr<Front>> Front::start(Backend& backend,
                                            protocol::Options options,
                                            net::ServerOptions server,
                                            store::Store* store) {
  std::unique_ptr<Front> front(new Front(backend, std::move(options), store));
  net::Router router;
  front->api_.add_routes(router);
  auto listening = net::Server::start(std::move(server), std::move(router));
  if (!listening) return listening.error();
  front->server_ = std::move(*listening);
  return front;
}

Front::Front(Backend& backend, protocol::Options options, store::Store* store)
    : backend_(backend),
      sharing_(options.share_identical ? std::make_unique<chat::SharingService>(backend.service())
                                       : nullptr),
      api_(
          sharing_ ? *sharing_ : backend.service(),
          clock_,
          std::move(options),
          [&backend] { return backend.unready_reason(); },
          store) {
  if (sharing_) {
    api_.metrics().add([this](protocol::MetricsText& out) {
      out.family("tandem_shared_requests_total", "counter",
                 "Requests that joined an identical one that was running.");
      out.sample("tandem_shared_requests_total", {}, static_cast<double>(sharing_->joined()));
    });
  }
  api_.tell_status([&backend] {
    return nlohmann::ordered_json{{"version", kVersion}, {"instances", backend.instances()}};
  });
  api_.metrics().add([&backend](protocol::MetricsText& out) { backend.write_metrics(out); });
}

Front::~Front() {
  server_.reset();
  // Requests without a connection, and those that were just cancelled, have their last event here.
  backend_.stop();
}

}  // namespace tandem::app
