// GET /, /health, /health/live and /health/ready, and GET /metrics.
#include "protocol/errors.h"
#include "protocol/handlers.h"

namespace tandem::protocol {

/// Clients look whether somebody is there.
void greet(Api&, const net::Request&, const ReplyPtr& reply) {
  reply->send(net::json_response(200, R"({"service":"tandem"})"));
}

void live(Api&, const net::Request&, const ReplyPtr& reply) {
  reply->send(net::json_response(200, R"({"status":"live"})"));
}

void ready(Api& api, const net::Request&, const ReplyPtr& reply) {
  const auto reason = api.unready_reason();
  if (!reason) return reply->send(net::json_response(200, R"({"status":"ready"})"));
  net::Response response =
      net::json_response(503, dump(Json{{"status", "unready"}, {"reason", *reason}}));
  response.headers.push_back({"Retry-After", "5"});
  reply->send(std::move(response));
}

void health(Api& api, const net::Request&, const ReplyPtr& reply) {
  const auto reason = api.unready_reason();
  Json body;
  body["status"] = reason ? "unready" : "ok";
  body["reason"] = reason ? Json(*reason) : Json(nullptr);
  body["model"] = api.service().model().id;
  body["requests_running"] = api.table().running();
  body["version"] = api.options().fingerprint;
  reply->send(net::json_response(reason ? 503 : 200, dump(body)));
}

void show_metrics(Api& api, const net::Request&, const ReplyPtr& reply) {
  reply->send({.status = 200,
               .headers = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
               .body = api.metrics().render(api.table().running())});
}

}  // namespace tandem::protocol
