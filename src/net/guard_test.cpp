#include "net/guard.h"

#include <doctest/doctest.h>

namespace tandem::net {
namespace {

int status_of(const Guard& guard, Headers headers, Access access = Access::kKeyed) {
  Request request;
  request.headers = std::move(headers);
  const auto refusal = guard.check(request, access);
  return refusal ? refusal->status : 200;
}

std::string key_id(const Guard& guard, Headers headers) {
  Request request;
  request.headers = std::move(headers);
  (void)guard.check(request, Access::kKeyed);
  return request.key_id;
}

TEST_CASE("guard: any of the keys opens, by either header, and nothing else does") {
  const Guard guard({.keys = {"alpha", "beta"}, .allowed_origins = {}});
  CHECK(status_of(guard, {{"Authorization", "Bearer alpha"}}) == 200);
  CHECK(status_of(guard, {{"authorization", "bearer  beta "}}) == 200);
  CHECK(status_of(guard, {{"X-Api-Key", "beta"}}) == 200);
  for (const Headers& headers :
       {Headers{}, Headers{{"Authorization", "Bearer "}}, Headers{{"Authorization", "alpha"}},
        Headers{{"Authorization", "Basic alpha"}}, Headers{{"Authorization", "Bearer alph"}},
        Headers{{"Authorization", "Bearer alphabeta"}}, Headers{{"x-api-key", ""}}}) {
    CHECK(status_of(guard, headers) == 401);
  }
  CHECK(status_of(guard, {}, Access::kOpen) == 200);
}

TEST_CASE("guard: a key's id tells keys apart and does not hold the key") {
  const Guard guard({.keys = {"alpha", "beta"}, .allowed_origins = {}});
  const std::string a = key_id(guard, {{"x-api-key", "alpha"}});
  CHECK(a == key_id(guard, {{"Authorization", "Bearer alpha"}}));
  CHECK(a != key_id(guard, {{"x-api-key", "beta"}}));
  CHECK(a.find("alpha") == std::string::npos);
  CHECK(key_id(Guard({}), {}).empty());
}

TEST_CASE("guard: web pages are kept out unless their origin is listed or the server's own") {
  const Guard guard({.keys = {}, .allowed_origins = {"https://good.example"}});
  CHECK(status_of(guard, {{"Origin", "https://good.example"}}) == 200);
  CHECK(status_of(guard, {{"Origin", "http://127.0.0.1:8080"}, {"Host", "127.0.0.1:8080"}}) == 200);
  CHECK(status_of(guard, {{"Origin", "https://good.example.evil"}}) == 403);
  CHECK(status_of(guard, {{"Origin", "null"}}) == 403);
  CHECK(status_of(guard, {{"Origin", "https://evil"}, {"Host", "127.0.0.1"}}) == 403);
}

TEST_CASE("guard: on loopback without keys a foreign host name is refused") {
  const Guard open({});
  for (const char* host : {"localhost:8080", "127.0.0.1:1", "[::1]:80", "LOCALHOST", ""}) {
    CHECK(status_of(open, {{"Host", host}}) == 200);
  }
  CHECK(status_of(open, {{"Host", "rebound.example:8080"}}) == 403);
  CHECK(status_of(Guard({.keys = {"k"}, .allowed_origins = {}}),
                  {{"Host", "box.local"}, {"x-api-key", "k"}}) == 200);
  CHECK(status_of(Guard({.keys = {}, .allowed_origins = {}, .loopback = false}),
                  {{"Host", "box.local"}}) == 200);
}

TEST_CASE("guard: CORS headers are sent to listed origins only") {
  const Guard guard({.keys = {}, .allowed_origins = {"https://good.example"}});
  Request good;
  good.headers = {{"Origin", "https://good.example"}};
  Request bad;
  bad.headers = {{"Origin", "https://bad.example"}};
  CHECK(find_header(guard.response_headers(good), "access-control-allow-origin") ==
        "https://good.example");
  CHECK(find_header(guard.response_headers(bad), "access-control-allow-origin").empty());
  CHECK(find_header(guard.preflight(good, "GET, OPTIONS").headers,
                    "access-control-allow-methods") == "GET, OPTIONS");
  CHECK(find_header(guard.preflight(bad, "GET").headers, "access-control-allow-methods").empty());
  CHECK(Guard({}).response_headers(good).empty());
}

}  // namespace
}  // namespace tandem::net
