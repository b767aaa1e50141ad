// What a prompt may have of earlier turns depends on whose it is: no route may forget to say so.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "protocol/state_server_test.h"

namespace tandem::protocol {
namespace {

TEST_CASE("separate clients: all that is asked about a prompt is asked for the key that sent it") {
  const std::string chat = R"({"messages":[{"role":"user","content":"a"}],"max_tokens":4})";
  const std::pair<const char*, std::string> requests[] = {
      {"/v1/chat/completions", chat},
      {"/v1/completions", R"({"prompt":"a"})"},
      {"/v1/messages", chat},
      {"/v1/messages/count_tokens", chat},
      {"/v1/responses", R"({"input":"a"})"},
      {"/v1/responses", R"({"input":"a","truncation":"auto"})"},
      {"/v1/responses", R"({"input":"a","background":true,"store":true})"},
      {"/v1/responses/input_tokens", R"({"input":"a"})"},
      {"/tokenize", R"({"messages":[{"role":"user","content":"a"}]})"},
      {"/apply-template", chat},
      {"/api/chat", R"({"messages":[{"role":"user","content":"a"}],"stream":false})"},
      {"/api/generate", R"({"prompt":"a","stream":false})"},
  };
  for (const auto& [path, body] : requests) {
    CAPTURE(path);
    CAPTURE(body);
    const store::TestFolder folder;
    StateServer server(folder, says({"b"}), {"first", "second"});
    const auto got = server.client("second").post(path, body).value();
    CHECK_MESSAGE(got.status == 200, got.body);
    const std::set<std::string> salts = server.service().salts();
    REQUIRE(salts.size() == 1);
    CHECK_FALSE(salts.begin()->empty());
  }
}

}  // namespace
}  // namespace tandem::protocol
