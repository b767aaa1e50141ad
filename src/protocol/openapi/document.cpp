#include "protocol/openapi/document.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "protocol/anthropic/messages_request.h"
#include "protocol/handlers.h"
#include "protocol/ollama/request.h"
#include "protocol/openai/chat_request.h"
#include "protocol/openai/completion_request.h"
#include "protocol/openai/responses_request.h"
#include "protocol/openapi/answers.h"
#include "protocol/openapi/shapes.h"

namespace tandem::protocol::openapi {
namespace {

enum class Errors { kOpenAi, kMessages, kOllama };

/// How a body is described: by its parser, or by hand.
struct Body {
  const char* endpoint = nullptr;  // set: by its parser
  Parse parse = nullptr;
  const char* whole = nullptr;     // the smallest body that is whole
  const char* required = nullptr;  // its fields that must be there
  const char* schema = nullptr;    // set: by hand
  bool streams = false;            // the answer may be a stream
  const char* query = nullptr;     // schemas of the query's fields, by name
};

struct Operation {
  const char* method;
  const char* path;
  const char* summary;
  Errors errors;
  Body body;
};

constexpr Body kNone{};

constexpr Body parsed(const char* endpoint, Parse parse, const char* whole, const char* required) {
  return {.endpoint = endpoint, .parse = parse, .whole = whole, .required = required};
}

constexpr Body streamed(const char* endpoint,
                        Parse parse,
                        const char* whole,
                        const char* required) {
  Body out = parsed(endpoint, parse, whole, required);
  out.streams = true;
  return out;
}

constexpr Body written(const char* schema) { return {.schema = schema}; }
constexpr Body query(const char* fields) { return {.query = fields}; }

#define PARSED(endpoint, parse, whole, required) parsed(endpoint, parse, whole, required)
#define STREAMED(endpoint, parse, whole, required) streamed(endpoint, parse, whole, required)
#define QUERY(fields) query(fields)
#define WRITTEN(schema) written(schema)
#define X(method, path, summary, errors, body) {#method, path, summary, Errors::errors, body},
constexpr Operation kOperations[] = {
#include "protocol/openapi/operations.inc"
};
#undef X
#undef WRITTEN
#undef QUERY
#undef STREAMED
#undef PARSED

struct RoutePath {
  const char* method;
  const char* path;
  bool has_v1;
  net::Access access;
};

#define X(method, path, access, handler) {#method, path, false, net::Access::k##access},
#define V1(method, path, access, handler) {#method, path, true, net::Access::k##access},
constexpr RoutePath kRoutes[] = {
#include "protocol/routes.inc"
};
#undef V1
#undef X

const char* type_of(FieldRule::Kind kind) {
  switch (kind) {
    case FieldRule::Kind::kBoolean:
      return "boolean";
    case FieldRule::Kind::kInteger:
      return "integer";
    case FieldRule::Kind::kNumber:
      return "number";
    case FieldRule::Kind::kString:
      return "string";
    case FieldRule::Kind::kObject:
      return "object";
    case FieldRule::Kind::kArray:
      return "array";
    case FieldRule::Kind::kAny:
      return nullptr;
  }
  return nullptr;
}

/// Null is as good as absent.
Json or_null(Json schema) {
  const auto type = schema.find("type");
  if (type != schema.end() && type->is_string()) {
    schema["type"] = Json::array({*type, "null"});
    return schema;
  }
  if (schema.empty() || (schema.size() == 1 && schema.contains("description"))) return schema;
  return Json{{"anyOf", Json::array({std::move(schema), Json{{"type", "null"}}})}};
}

Json schema_of(const FieldRule& rule, const std::string& endpoint) {
  if (Json shape = shape_of(endpoint, rule.name); !shape.is_null()) return shape;
  Json out = Json::object();
  if (const char* type = type_of(rule.kind)) out["type"] = type;
  if (!rule.least.is_null()) out["minimum"] = rule.least;
  if (!rule.most.is_null()) out["maximum"] = rule.most;
  if (rule.no_effect) out["description"] = "accepted, without effect";
  return out;
}

/// The names that the served model has.
Json model_names(const ParseContext& context) {
  Json names = Json::array({context.model.id, context.model.id + ":latest", "default_model"});
  for (const std::string& alias : context.options.aliases) names.push_back(alias);
  return Json{{"enum", std::move(names)}};
}

Json guard_switches() {
  Json switches = Json::object();
  for (const chat::GuardSwitch& guard : chat::kGuardSwitches) {
    switches[guard.name] = Json{{"type", "boolean"}};
  }
  return Json{
      {"type", "object"}, {"properties", std::move(switches)}, {"additionalProperties", false}};
}

std::vector<std::string> words(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    out.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

Json body_schema(const Body& body, const ParseContext& context) {
  if (body.schema) return Json::parse(body.schema);
  FieldLog log;
  ParseContext asking = context;
  asking.log = &log;
  [[maybe_unused]] const auto wire = body.parse(body.whole, asking);
  const std::vector<std::string> required = words(body.required);
  Json properties = Json::object();
  for (const FieldRule& rule : log) {
    if (rule.refused) continue;
    Json schema = schema_of(rule, body.endpoint);
    const bool must = std::ranges::find(required, rule.name) != required.end();
    properties[rule.name] = must ? std::move(schema) : or_null(std::move(schema));
  }
  Json out{{"type", "object"}};
  if (!required.empty()) out["required"] = required;
  out["properties"] = std::move(properties);
  return out;
}

Json reference(const char* name) {
  return Json{{"$ref", std::string("#/components/schemas/") + name}};
}

Json error_schema(Errors errors) {
  if (errors == Errors::kOpenAi) return reference("Error");
  return reference(errors == Errors::kOllama ? "OllamaError" : "MessagesError");
}

Json content(const char* type, Json schema) {
  return Json{{type, Json{{"schema", std::move(schema)}}}};
}

Json responses(const Operation& operation) {
  const Json answer = answer_of(operation.method, operation.path);
  Json good = answer.is_null() ? content("text/plain", Json{{"type", "string"}})
                               : content("application/json", answer);
  if (operation.body.streams) {
    const bool lines = operation.errors == Errors::kOllama;
    good.update(
        content(lines ? "application/x-ndjson" : "text/event-stream", Json{{"type", "string"}}));
  }
  Json out;
  out["200"] = Json{{"description", "Done"}, {"content", std::move(good)}};
  if (answer == reference("Health")) {
    out["503"] = Json{{"description", "Not now"}, {"content", content("application/json", answer)}};
  }
  out["default"] = Json{{"description", "Refused or failed"},
                        {"content", content("application/json", error_schema(operation.errors))}};
  return out;
}

/// The pattern without its dots, with /v1 where there is such a path.
std::string shown_path(const RoutePath& route) {
  std::string path = (route.has_v1 ? "/v1" : "") + std::string(route.path);
  if (const size_t dots = path.find("...}"); dots != std::string::npos) path.erase(dots, 3);
  return path;
}

Json parameter(const std::string& name, const char* place, Json schema) {
  Json out;
  out["name"] = name;
  out["in"] = place;
  out["required"] = std::string_view(place) == "path";
  out["schema"] = std::move(schema);
  return out;
}

Json parameters_of(const std::string& path, const Body& body) {
  Json out = Json::array();
  for (size_t open = path.find('{'); open != std::string::npos; open = path.find('{', open + 1)) {
    const std::string name = path.substr(open + 1, path.find('}', open) - open - 1);
    out.push_back(parameter(name, "path", Json{{"type", "string"}, {"minLength", 1}}));
  }
  if (!body.query) return out;
  const Json fields = Json::parse(body.query);
  for (const auto& [name, schema] : fields.items()) out.push_back(parameter(name, "query", schema));
  return out;
}

const Operation* find_operation(const RoutePath& route) {
  const auto found = std::ranges::find_if(kOperations, [&](const Operation& operation) {
    return std::string_view(operation.method) == route.method &&
           std::string_view(operation.path) == route.path;
  });
  return found == std::end(kOperations) ? nullptr : &*found;
}

Json describe(const RoutePath& route, const Operation& operation, const ParseContext& context) {
  Json out;
  out["summary"] = operation.summary;
  Json parameters = parameters_of(shown_path(route), operation.body);
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  if (operation.body.schema || operation.body.endpoint) {
    out["requestBody"] =
        Json{{"required", true},
             {"content", content("application/json", body_schema(operation.body, context))}};
  }
  out["responses"] = responses(operation);
  if (route.access == net::Access::kOpen) out["security"] = Json::array();
  return out;
}

}  // namespace

Json make_document(const ParseContext& context) {
  Json paths = Json::object();
  for (const RoutePath& route : kRoutes) {
    const Operation* operation = find_operation(route);
    if (!operation) continue;
    std::string method = route.method;
    std::ranges::transform(method, method.begin(),
                           [](char c) { return static_cast<char>(c | 32); });
    paths[shown_path(route)][method] = describe(route, *operation, context);
  }
  Json out;
  out["openapi"] = "3.1.0";
  out["info"] = Json{{"title", "tandem"},
                     {"version", context.options.fingerprint},
                     {"description",
                      "Paths below /v1 exist without it too. Unknown fields are "
                      "ignored, or refused with --strict-fields."}};
  out["paths"] = std::move(paths);
  out["components"]["schemas"] = components();
  out["components"]["schemas"].update(answer_components());
  out["components"]["schemas"]["Model"] = model_names(context);
  out["components"]["schemas"]["Guards"] = guard_switches();
  out["components"]["securitySchemes"] =
      Json{{"bearer", Json{{"type", "http"}, {"scheme", "bearer"}}},
           {"x_api_key", Json{{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}};
  // A server without keys asks for none.
  out["security"] = Json::array(
      {Json::object(), Json{{"bearer", Json::array()}}, Json{{"x_api_key", Json::array()}}});
  return out;
}

std::vector<std::string> mismatches() {
  std::vector<std::string> out;
  for (const RoutePath& route : kRoutes) {
    if (!find_operation(route)) out.push_back(std::string(route.method) + " " + route.path);
  }
  for (const Operation& operation : kOperations) {
    const bool known = std::ranges::any_of(
        kRoutes, [&](const RoutePath& route) { return find_operation(route) == &operation; });
    if (!known) out.push_back(std::string(operation.method) + " " + operation.path);
  }
  return out;
}

}  // namespace tandem::protocol::openapi

namespace tandem::protocol {

void show_openapi(Api& api, const net::Request&, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  reply->send(net::json_response(
      200, dump(openapi::make_document({.model = model, .options = api.options()}))));
}

}  // namespace tandem::protocol
