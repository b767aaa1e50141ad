// Faults that are found before a handler, over loopback.
#include <doctest/doctest.h>

#include "protocol/state_server_test.h"

namespace tandem::protocol {
namespace {

TEST_CASE("faults: what is not there is told in the words of its wire") {
  const store::TestFolder folder;
  const StateServer server(folder, says({"x"}), {"key"});
  const auto client = server.client("key");
  const auto error = [&](const char* path) {
    CAPTURE(path);
    const auto missing = client.get(path).value();
    CHECK(missing.status == 404);
    return Json::parse(missing.body);
  };
  for (const char* path : {"/api", "/api/", "/api/none", "/v1/api", "/v1/api/chat"}) {
    CHECK(error(path) == Json{{"error", "there is nothing at this path"}});
  }
  for (const char* path : {"/messages/none", "/v1/messages/none"}) {
    CHECK(error(path) == Json::parse(R"({"type":"error","error":{"type":"not_found_error",
                                         "message":"there is nothing at this path"}})"));
  }
  for (const char* path : {"/none", "/v1/none", "/v1", "/apis/none"}) {
    CHECK(error(path)["error"]["code"] == "route_not_found");
  }
}

TEST_CASE("faults: a method or a key that is wrong is told in the words of its wire") {
  const store::TestFolder folder;
  const StateServer server(folder, says({"x"}), {"key"});
  const auto client = server.client("key");
  const auto stranger = server.client("other");
  const auto method = client.post("/api/tags", "{}").value();
  CHECK(method.status == 405);
  CHECK(Json::parse(method.body)["error"].is_string());
  const auto locked = stranger.get("/api/tags").value();
  CHECK(locked.status == 401);
  CHECK(Json::parse(locked.body)["error"].is_string());
  const auto messages = stranger.post("/v1/messages", "{}").value();
  CHECK(messages.status == 401);
  const Json body = Json::parse(messages.body);
  CHECK(body["error"]["type"] == "authentication_error");
  CHECK_FALSE(body["error"].contains("code"));
}

}  // namespace
}  // namespace tandem::protocol
