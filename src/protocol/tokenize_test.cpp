// Prompts without a generation, in front of a service whose tokens are bytes.
#include <doctest/doctest.h>

#include "chat/fake_service_test.h"
#include "protocol/api.h"
#include "protocol/direct_test.h"

namespace tandem::protocol {
namespace {

Json tokens_of(std::string_view text) {
  Json out = Json::array();
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

TEST_CASE("tokenize: a text becomes ids, with special tokens by vLLM's default or llama.cpp's") {
  DirectApi api;
  const Json prompt = api.post("/tokenize", R"({"prompt":"hi"})");
  CHECK(prompt["tokens"] == Json::parse("[256,104,105]"));
  CHECK(prompt["count"] == 3);
  CHECK(prompt["max_model_len"] == 4096);
  CHECK(prompt["token_strs"].is_null());
  CHECK(api.post("/v1/tokenize", R"({"content":"hi"})")["tokens"] == Json::parse("[104,105]"));
  CHECK(api.post("/tokenize", R"({"prompt":"hi","add_special_tokens":false})")["count"] == 2);
  CHECK(api.post("/tokenize", R"({"content":"hi","add_special":true})")["count"] == 3);
  CHECK(api.post("/tokenize", R"({"content":""})")["tokens"] == Json::array());
}

TEST_CASE("tokenize: pieces are text, or bytes where a token is part of a character") {
  DirectApi api;
  const Json out =
      api.post("/tokenize", R"({"content":"aé","with_pieces":true,"return_token_strs":true})");
  CHECK(
      out["tokens"] ==
      Json::parse(R"([{"id":97,"piece":"a"},{"id":195,"piece":[195]},{"id":169,"piece":[169]}])"));
  CHECK(out["token_strs"] == Json::parse(R"(["a","\uFFFD","\uFFFD"])"));
}

TEST_CASE("tokenize: messages are the prompt that a chat would have") {
  DirectApi api;
  const char* const fields =
      R"("messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],"chat_template_kwargs":{"depth":1}})";
  const Json text = api.post("/apply-template", std::string("{\"temperature\":0,") + fields);
  const auto prompt = text["prompt"].get<std::string>();
  CHECK(prompt.find("tools") != std::string::npos);
  CHECK(prompt.find(R"({"depth":1})") != std::string::npos);
  CHECK(api.post("/tokenize", std::string("{") + fields)["tokens"] == tokens_of(prompt));
  const Json back = api.post("/detokenize", Json{{"tokens", tokens_of(prompt)}}.dump());
  CHECK(back["prompt"] == prompt);
  CHECK(back["content"] == prompt);
  CHECK(api.post("/detokenize", R"({"tokens":[]})")["prompt"] == "");
}

TEST_CASE("tokenize: what is wrong is named") {
  DirectApi api;
  const struct {
    const char* path;
    const char* body;
    int status;
    const char* param;
  } cases[] = {
      {"/tokenize", "{}", 400, "prompt"},
      {"/tokenize", "[]", 400, nullptr},
      {"/tokenize", R"({"prompt":"a","content":"b"})", 400, "content"},
      {"/tokenize", R"({"prompt":["a"]})", 400, "prompt"},
      {"/tokenize", R"({"prompt":"a","add_special":1})", 400, "add_special"},
      {"/tokenize", R"({"prompt":"a","parse_special":false})", 400, "parse_special"},
      {"/tokenize", R"({"prompt":"a","model":"other"})", 404, "model"},
      {"/tokenize", R"({"messages":[]})", 400, "messages"},
      {"/tokenize", R"({"messages":[{"role":"user"}]})", 400, "messages[0].content"},
      {"/detokenize", "{}", 400, "tokens"},
      {"/detokenize", R"({"tokens":"1"})", 400, "tokens"},
      {"/detokenize", R"({"tokens":[1.5]})", 400, "tokens"},
      {"/detokenize", R"({"tokens":[-1]})", 400, "tokens"},
      {"/detokenize", R"({"tokens":[99999999999]})", 400, "tokens"},
      {"/apply-template", R"({"prompt":"x"})", 400, "messages"},
      {"/apply-template", R"({"messages":[{"role":"user","content":"x"}],"tools":[1]})", 400,
       "tools[0]"},
  };
  for (const auto& test : cases) {
    CAPTURE(test.path);
    CAPTURE(test.body);
    const net::Response response = api.respond("POST", test.path, test.body);
    CHECK(response.status == test.status);
    const Json error = Json::parse(response.body)["error"];
    CHECK(error["param"] == (test.param ? Json(test.param) : Json(nullptr)));
  }
}

TEST_CASE("tokenize: what is too long is refused before it is worked on") {
  DirectApi api;
  const std::string text(9 << 20, 'x');
  for (const char* field : {"prompt", "content"}) {
    CHECK(api.respond("POST", "/tokenize", Json{{field, text}}.dump()).status == 400);
  }
  const Json messages = Json::array({Json{{"role", "user"}, {"content", text}}});
  CHECK(api.respond("POST", "/tokenize", Json{{"messages", messages}}.dump()).status == 400);
  const Json ids(std::vector<int>(1'000'001, 1));
  CHECK(api.respond("POST", "/detokenize", Json{{"tokens", ids}}.dump()).status == 400);
}

}  // namespace
}  // namespace tandem::protocol
