// GET /v1/models and /v1/models/{id}, in the shape of the wire that the client speaks.
#include <fmt/chrono.h>

#include <ctime>

#include "protocol/anthropic/errors.h"
#include "protocol/errors.h"
#include "protocol/handlers.h"
#include "protocol/wire_request.h"

namespace tandem::protocol {
namespace {

/// Clients of the Anthropic wire always say which version they speak.
bool is_anthropic(const net::Request& request) {
  return !request.header("anthropic-version").empty();
}

Json openai_entry(const chat::ModelInfo& model, const Options& options) {
  Json out;
  out["id"] = model.id;
  out["object"] = "model";
  out["created"] = model.created;
  out["owned_by"] = options.owner;
  out["context_length"] = model.max_context;
  out["max_model_len"] = model.max_context;
  out["native_context_length"] = model.native_context;
  out["max_output_tokens"] = model.max_output;
  return out;
}

Json anthropic_entry(const chat::ModelInfo& model) {
  const auto created = static_cast<std::time_t>(model.created);
  Json out;
  out["type"] = "model";
  out["id"] = model.id;
  out["display_name"] = model.id;
  out["created_at"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(created));
  out["max_input_tokens"] = model.max_context;
  out["max_tokens"] = model.max_output;
  return out;
}

Json entry(const chat::ModelInfo& model, Api& api, const net::Request& request) {
  return is_anthropic(request) ? anthropic_entry(model) : openai_entry(model, api.options());
}

}  // namespace

void list_models(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  Json out;
  if (!is_anthropic(request)) out["object"] = "list";
  out["data"] = Json::array({entry(model, api, request)});
  if (is_anthropic(request)) {
    out["has_more"] = false;
    out["first_id"] = model.id;
    out["last_id"] = model.id;
  }
  reply->send(net::json_response(200, dump(out)));
}

void show_model(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  const std::string& name = request.parameters.at("id");
  if (!is_served(name, {.model = model, .options = api.options()})) {
    const Error error = unknown_model(name);
    return reply->send(is_anthropic(request) ? anthropic::error_response(error)
                                             : error_response(error));
  }
  reply->send(net::json_response(200, dump(entry(model, api, request))));
}

}  // namespace tandem::protocol
