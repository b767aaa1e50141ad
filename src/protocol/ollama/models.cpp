// GET /api/tags, /api/ps and /api/version, and POST /api/show.
#include <fmt/chrono.h>

#include <ctime>

#include "protocol/handlers.h"
#include "protocol/ollama/errors.h"
#include "protocol/wire_request.h"

namespace tandem::protocol::ollama {
namespace {

/// The version of Ollama whose API this is: clients compare it with what they need.
constexpr const char* kSpokenVersion = "0.12.6";
/// The model stays until the server ends.
constexpr const char* kNever = "9999-12-31T23:59:59Z";

std::string time_text(int64_t unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

/// Clients expect a tag.
std::string tagged(const std::string& id) {
  return id.find(':') == std::string::npos ? id + ":latest" : id;
}

Json details(const chat::ModelInfo& model) {
  Json out;
  out["parent_model"] = "";
  out["format"] = model.container;
  out["family"] = model.family;
  out["families"] = Json::array({model.family});
  out["parameter_size"] = "";
  out["quantization_level"] = "";
  return out;
}

Json entry(const chat::ModelInfo& model) {
  Json out;
  out["name"] = tagged(model.id);
  out["model"] = tagged(model.id);
  out["size"] = model.weight_bytes;
  out["digest"] = "";
  out["details"] = details(model);
  return out;
}

Json model_info(const chat::ModelInfo& model) {
  const std::string family = model.family.empty() ? "unknown" : model.family;
  Json out;
  out["general.architecture"] = family;
  out["general.basename"] = model.id;
  out[family + ".context_length"] = model.max_context;
  out[family + ".vocab_size"] = model.vocab;
  return out;
}

Json capabilities(const chat::ModelInfo& model) {
  Json out = Json::array({"completion"});
  if (model.has_chat_template) out.push_back("tools");
  if (model.can_think) out.push_back("thinking");
  return out;
}

Result<Json> shown(Api& api, const net::Request& request) {
  const auto body = parse_body(request.body);
  if (!body) return body.error();
  Fields fields(*body);
  auto name = fields.string("model", SIZE_MAX);
  if (!name) name = fields.string("name", SIZE_MAX);  // the older one
  if (fields.error()) return *fields.error();
  if (!name || name->empty()) {
    return Error{ErrorCode::kInvalid, "'model' is missing: see /api/tags", "model"};
  }
  const chat::ModelInfo model = api.service().model();
  if (!is_served(*name, {.model = model, .options = api.options()})) return unknown_model(*name);
  Json out;
  out["details"] = details(model);
  out["model_info"] = model_info(model);
  out["capabilities"] = capabilities(model);
  out["modified_at"] = time_text(model.created);
  return out;
}

}  // namespace

void list_tags(Api& api, const net::Request&, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  Json listed = entry(model);
  listed["modified_at"] = time_text(model.created);
  reply->send(net::json_response(200, dump(Json{{"models", Json::array({listed})}})));
}

void list_loaded(Api& api, const net::Request&, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  Json listed = entry(model);
  listed["expires_at"] = kNever;
  listed["size_vram"] = model.weight_bytes;
  listed["context_length"] = model.max_context;
  reply->send(net::json_response(200, dump(Json{{"models", Json::array({listed})}})));
}

void show(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const auto body = shown(api, request);
  reply->send(body ? net::json_response(200, dump(*body)) : error_response(body.error()));
}

void version(Api&, const net::Request&, const ReplyPtr& reply) {
  reply->send(net::json_response(200, dump(Json{{"version", kSpokenVersion}})));
}

}  // namespace tandem::protocol::ollama
