#include "protocol/openapi/document.h"

#include <doctest/doctest.h>

#include <set>

#include "protocol/direct_test.h"

namespace tandem::protocol::openapi {
namespace {

Json document() {
  DirectApi api;
  return Json::parse(api.respond("GET", "/openapi.json").body);
}

const Json& body_of(const Json& document, const char* path) {
  return document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
}

TEST_CASE("openapi: every route is described, and nothing else") {
  for (const std::string& route : mismatches()) FAIL_CHECK("in one table only: ", route);
}

TEST_CASE("openapi: the document is found where clients of either base URL look") {
  DirectApi api;
  const net::Response got = api.respond("GET", "/v1/openapi.json");
  CHECK(got.status == 200);
  CHECK(got.body == api.respond("GET", "/openapi.json").body);
}

TEST_CASE("openapi: a body has the fields that its parser reads, with their bounds") {
  const Json all = document();
  const Json& chat = body_of(all, "/v1/chat/completions");
  CHECK(chat["required"] == Json::array({"messages"}));
  CHECK(dump(chat["properties"]["n"]) == R"({"type":["integer","null"],"minimum":1,"maximum":32})");
  CHECK(dump(chat["properties"]["temperature"]) ==
        R"({"type":["number","null"],"minimum":0.0,"maximum":100.0})");
  CHECK(chat["properties"]["stream"]["type"][0] == "boolean");
  CHECK(chat["properties"]["messages"]["items"]["$ref"] == "#/components/schemas/ChatMessage");
  CHECK(chat["properties"]["user"]["description"] == "accepted, without effect");
  CHECK_FALSE(chat["properties"].contains("functions"));
  CHECK(body_of(all, "/v1/completions")["properties"].contains("echo"));
  CHECK(body_of(all, "/v1/messages")["properties"].contains("stop_sequences"));
  CHECK(body_of(all, "/v1/responses")["properties"].contains("max_output_tokens"));
  CHECK(body_of(all, "/api/chat")["properties"].contains("options"));
}

/// Every name behind "$ref".
void collect(const Json& json, std::set<std::string>& out) {
  if (json.is_object() && json.contains("$ref")) out.insert(json["$ref"].get<std::string>());
  if (!json.is_structured()) return;
  for (const Json& inner : json) collect(inner, out);
}

TEST_CASE("openapi: every answer but plain text has a schema of its own") {
  const Json all = document();
  for (const auto& [path, operations] : all["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      CAPTURE(path);
      CAPTURE(method);
      const Json& content = operation["responses"]["200"]["content"];
      const bool is_text = path == "/metrics";
      CHECK(content.contains("application/json") == !is_text);
      if (!is_text) CHECK(content["application/json"]["schema"].contains("$ref"));
    }
  }
  CHECK(all["paths"].contains("/v1/status"));
}

TEST_CASE("openapi: what is referred to is there") {
  const Json all = document();
  std::set<std::string> names;
  collect(all, names);
  CHECK(names.size() > 8);
  for (const std::string& name : names) {
    CHECK_MESSAGE(all.contains(Json::json_pointer(name.substr(1))), name);
  }
}

}  // namespace
}  // namespace tandem::protocol::openapi
