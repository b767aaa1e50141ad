#include "base/host_port.h"

#include <doctest/doctest.h>

namespace tandem {
namespace {

TEST_CASE("host and port: names, numbers and bracketed addresses are split") {
  const auto split = [](const char* text) {
    const auto parsed = parse_host_port(text);
    REQUIRE(parsed);
    return parsed->host + " " + std::to_string(parsed->port);
  };
  CHECK(split("a.example:80") == "a.example 80");
  CHECK(split("127.0.0.1:0") == "127.0.0.1 0");
  CHECK(split("[::1]:65535") == "::1 65535");
}

TEST_CASE("host and port: whatever else is refused, with what came") {
  for (const char* text : {"", ":", "a", "a:", ":1", "a:65536", "a:-1", "a:+1", "a: 1", "a:1 ",
                           "a:http", "::1:1", "[]:1", "[:1", "]:1", "[::1:1", "::1]:1", "[::1]"}) {
    CAPTURE(text);
    const auto parsed = parse_host_port(text);
    REQUIRE(!parsed);
    CHECK(parsed.error().code == ErrorCode::kInvalid);
    CHECK(parsed.error().message.ends_with(std::string("got '") + text + "'"));
  }
}

}  // namespace
}  // namespace tandem
