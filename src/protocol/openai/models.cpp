// GET /v1/models and /v1/models/{id}.
#include "protocol/errors.h"
#include "protocol/handlers.h"
#include "protocol/wire_request.h"

namespace tandem::protocol::openai {
namespace {

Json entry(const chat::ModelInfo& model, const Options& options) {
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

}  // namespace

void list_models(Api& api, const net::Request&, const ReplyPtr& reply) {
  Json out{{"object", "list"}, {"data", Json::array()}};
  out["data"].push_back(entry(api.service().model(), api.options()));
  reply->send(net::json_response(200, dump(out)));
}

void show_model(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  const std::string& name = request.parameters.at("id");
  if (!is_served(name, {.model = model, .options = api.options()})) {
    return reply->send(error_response(unknown_model(name)));
  }
  reply->send(net::json_response(200, dump(entry(model, api.options()))));
}

}  // namespace tandem::protocol::openai
