// POST /v1/stop, GET /v1/requests and GET /v1/status.
#include <fmt/format.h>

#include "protocol/errors.h"
#include "protocol/handlers.h"
#include "protocol/wire_request.h"

namespace tandem::protocol {
namespace {

/// The one id a body names.
Result<std::string> named_request(const Json& body) {
  Fields fields(body);
  std::optional<std::string> id;
  for (const char* name : {"request_id", "expected_request_id", "id"}) {
    const auto value = fields.string(name, 256);
    if (!value) continue;
    if (id && *id != *value) {
      return Error{ErrorCode::kConflict,
                   fmt::format("{} and {} are not the same request", literal(*id), literal(*value)),
                   name};
    }
    id = value;
  }
  if (fields.error()) return *fields.error();
  if (!id || id->empty()) {
    return Error{ErrorCode::kInvalid, "'request_id' is missing: see /v1/requests", "request_id"};
  }
  return *id;
}

Status stop(Api& api, const net::Request& request, const std::string& id) {
  const auto record = api.table().find(id);
  const bool foreign = record && api.options().separate_clients && record->client != request.key_id;
  if (!record || foreign) {
    return Error{ErrorCode::kNotFound, fmt::format("no request is named {}", literal(id)),
                 "request_id"};
  }
  if (!record->ended && api.service().cancel(id)) return {};
  return Error{ErrorCode::kConflict, fmt::format("the request {} has ended already", literal(id)),
               "request_id"};
}

}  // namespace

void list_requests(Api& api, const net::Request&, const ReplyPtr& reply) {
  reply->send(net::json_response(200, dump(api.table().to_json())));
}

void show_status(Api& api, const net::Request&, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  Json body{{"model", model.id}, {"max_context", model.max_context}};
  if (api.status_fields()) body.update(api.status_fields()());
  body["requests"] = api.table().to_json()["active"];
  reply->send(net::json_response(200, dump(body)));
}

void stop_request(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const auto body = parse_body(request.body);
  if (!body) return reply->send(error_response(body.error()));
  const auto id = named_request(*body);
  if (!id) return reply->send(error_response(id.error()));
  if (const Status stopped = stop(api, request, *id); !stopped) {
    return reply->send(error_response(stopped.error()));
  }
  reply->send(net::json_response(200, dump(Json{{"request_id", *id}, {"stopped", true}})));
}

}  // namespace tandem::protocol
