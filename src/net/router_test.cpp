#include "net/router.h"

#include <doctest/doctest.h>

namespace tandem::net {
namespace {

Router sample() {
  Router router;
  const Handler nothing = [](const Request&, const std::shared_ptr<Reply>&) {};
  for (const auto& [method, pattern] : {std::pair{"GET", "/v1/models/{id...}"},
                                        {"GET", "/"},
                                        {"GET", "/v1/models"},
                                        {"POST", "/v1/models"},
                                        {"GET", "/v1/files/{id}/content"},
                                        {"GET", "/v1/models/special"}}) {
    router.add({.method = method, .pattern = pattern, .handler = nothing});
  }
  return router;
}

TEST_CASE("router: faults of a path and below it are put in its own words") {
  net::Router router;
  router.restate_below("/api", [](net::Response& fault) { fault.body = "other words"; });
  const auto words = [&](const char* path) {
    net::Response fault{.status = 404, .headers = {}, .body = "words"};
    router.restate(path, fault);
    return fault.body;
  };
  for (const char* path : {"/v1/x", "/", "/apis", "/apis/x", "/v1/api", ""}) {
    CHECK(words(path) == "words");
  }
  for (const char* path : {"/api", "/api/", "/api/x", "/api/x/y"}) {
    CHECK(words(path) == "other words");
  }
}

TEST_CASE("router: paths match exactly, parameters are decoded, exact routes come first") {
  const Router router = sample();
  const auto pattern = [&](const char* path) {
    const auto match = router.match("GET", path);
    return match.route ? match.route->pattern : std::string("none");
  };
  CHECK(pattern("/") == "/");
  CHECK(pattern("/v1/models") == "/v1/models");
  CHECK(pattern("/v1/models/special") == "/v1/models/special");
  CHECK(pattern("/v1/files/f-1/content") == "/v1/files/{id}/content");
  for (const char* path : {"", "/v1", "/v1/", "/v1/models/", "/V1/models", "//v1/models",
                           "v1/models", "/v1/files//content", "/v1/files/a/b/content",
                           "/v1/files/a", "/v1/models/%", "/v1/models/%zz"}) {
    CAPTURE(path);
    CHECK(pattern(path) == "none");
  }
  CHECK(router.match("GET", "/v1/models/org/name%20x").parameters.at("id") == "org/name x");
  CHECK(router.match("GET", "/v1/files/a%2Fb/content").parameters.at("id") == "a/b");
}

TEST_CASE("router: a wrong method is told which are right, HEAD is GET") {
  const Router router = sample();
  const auto wrong = router.match("DELETE", "/v1/models");
  CHECK(wrong.route == nullptr);
  CHECK(wrong.allow == "GET, POST");
  CHECK(router.match("GET", "/nowhere").allow.empty());
  REQUIRE(router.match("HEAD", "/").route != nullptr);
}

}  // namespace
}  // namespace tandem::net
