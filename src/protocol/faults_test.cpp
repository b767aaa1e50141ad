// Faults that are found before a handler, over loopback.
#include <doctest/doctest.h>

#include "protocol/state_server_test.h"

namespace tandem::protocol {
namespace {

TEST_CASE("faults: what is not there is told in the words of its wire") {
  const store::TestFolder folder;
  const StateServer server(folder, says({"x"}), {"key"});
  const auto client = server.client("key");
  const auto missing = client.get("/api/none").value();
  CHECK(missing.status == 404);
  CHECK(Json::parse(missing.body) == Json{{"error", "there is nothing at this path"}});
  const auto method = client.post("/api/tags", "{}").value();
  CHECK(method.status == 405);
  CHECK(Json::parse(method.body)["error"].is_string());
  const auto locked = server.client("other").get("/api/tags").value();
  CHECK(locked.status == 401);
  CHECK(Json::parse(locked.body)["error"].is_string());
  CHECK(Json::parse(client.get("/v1/none").value().body)["error"]["code"] == "route_not_found");
}

}  // namespace
}  // namespace tandem::protocol
