#include "app/front.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "app/version.h"

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

/// GET /v1/status: the model, its instances with ranks and pids, running requests.
net::Response status(Backend& backend, protocol::Api& api) {
  const chat::ModelInfo model = backend.service().model();
  const Json body = {{"model", model.id},
                     {"max_context", model.max_context},
                     {"version", kVersion},
                     {"instances", backend.instances()},
                     {"requests", Json(api.table().to_json())["active"]}};
  return net::json_response(200, body.dump());
}

}  // namespace

Result<std::unique_ptr<Front>> Front::start(Backend& backend,
                                            protocol::Options options,
                                            net::ServerOptions server,
                                            store::Store* store) {
  std::unique_ptr<Front> front(new Front(backend, std::move(options), store));
  net::Router router;
  front->api_.add_routes(router);
  protocol::add_v1(router,
                   {.method = "GET",
                    .pattern = "/status",
                    .handler = [raw = front.get()](const net::Request&,
                                                   const std::shared_ptr<net::Reply>& reply) {
                      reply->send(status(raw->backend_, raw->api_));
                    }});
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
  api_.metrics().add([&backend](protocol::MetricsText& out) { backend.write_metrics(out); });
}

Front::~Front() {
  server_.reset();
  // Requests without a connection, and those that were just cancelled, have their last event here.
  backend_.stop();
}

}  // namespace tandem::app
