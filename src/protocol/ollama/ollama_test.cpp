// Ollama's API in front of a scripted service.
#include <doctest/doctest.h>

#include "protocol/direct_test.h"

namespace tandem::protocol::ollama {
namespace {

std::vector<chat::Event> thought_text_and_call(const chat::Request&) {
  std::vector<chat::Event> out;
  const auto add = [&](auto body) { out.push_back({.choice = 0, .body = std::move(body)}); };
  const auto say = [&](chat::Channel channel, const char* text) {
    add(chat::Delta{.channel = channel, .text = text, .logprobs = {}});
  };
  say(chat::Channel::kThinking, "Hm");
  say(chat::Channel::kThinking, "m.");
  say(chat::Channel::kText, "Let me ");
  say(chat::Channel::kText, "see.");
  add(chat::CallStarted{.call = 0, .id = "call_a", .name = "f"});
  add(chat::CallArguments{.call = 0, .json = R"({"b":[1],)"});
  add(chat::CallArguments{.call = 0, .json = R"("a":"é"})"});
  add(chat::CallEnded{.call = 0});
  add(chat::End{.reason = chat::FinishReason::kToolCalls,
                .stop_text = {},
                .usage = {.prompt_tokens = 7,
                          .cached_tokens = 3,
                          .completion_tokens = 9,
                          .reasoning_tokens = 2},
                .guards = {chat::Guard::kThinkingBudget}});
  return out;
}

std::vector<Json> lines(const net::Response& response) {
  std::vector<Json> out;
  size_t at = 0;
  while (at < response.body.size()) {
    const size_t end = response.body.find('\n', at);
    REQUIRE(end != std::string::npos);
    out.push_back(Json::parse(response.body.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

const char* const kAsk = R"({"model":"org/tiny","messages":[{"role":"user","content":"hi"}])";

TEST_CASE("ollama: a streamed chat, which is the default, says what a whole one says") {
  DirectApi api(thought_text_and_call);
  const Json whole = api.post("/api/chat", std::string(kAsk) + R"(,"stream":false})");
  CHECK(whole["message"]["content"] == "Let me see.");
  CHECK(whole["message"]["thinking"] == "Hmm.");
  const Json call = whole["message"]["tool_calls"][0];
  CHECK(call["function"]["name"] == "f");
  CHECK(call["function"]["arguments"] == Json::parse(R"({"b":[1],"a":"é"})"));
  CHECK(whole["done"] == true);
  CHECK(whole["done_reason"] == "stop");
  CHECK(whole["prompt_eval_count"] == 7);
  CHECK(whole["eval_count"] == 9);
  CHECK(whole["eval_reasoning_count"] == 2);
  CHECK(whole["finish_detail"] == Json::array({"thinking_budget"}));
  for (const char* name : {"total_duration", "prompt_eval_duration", "eval_duration"}) {
    CHECK(whole[name].get<int64_t>() >= 0);
  }

  const net::Response stream = api.respond("POST", "/api/chat", std::string(kAsk) + "}");
  CHECK(net::find_header(stream.headers, "content-type") == "application/x-ndjson");
  std::string text;
  std::string thinking;
  Json calls = Json::array();
  const std::vector<Json> pieces = lines(stream);
  for (const Json& piece : pieces) {
    CHECK(piece["model"] == "org/tiny");
    const Json& message = piece["message"];
    CHECK(message["role"] == "assistant");
    text += message["content"];
    thinking += message.value("thinking", "");
    if (message.contains("tool_calls")) calls.push_back(message["tool_calls"][0]);
    CHECK(piece["done"] == (&piece == &pieces.back()));
  }
  CHECK(text == "Let me see.");
  CHECK(thinking == "Hmm.");
  CHECK(calls == whole["message"]["tool_calls"]);
  CHECK(pieces.back()["eval_count"] == 9);
  CHECK(pieces.back()["finish_detail"] == whole["finish_detail"]);
}

TEST_CASE("ollama: generate answers a prompt with its system text, or raw") {
  DirectApi api(thought_text_and_call);
  const Json whole = api.post(
      "/api/generate", R"({"prompt":"hi","system":"Be brief.","stream":false,"think":true})");
  CHECK(whole["response"] == "Let me see.");
  CHECK(whole["thinking"] == "Hmm.");
  CHECK_FALSE(whole.contains("message"));
  CHECK(whole["warnings"][0]["code"] == "thinking_not_offered");
  const auto talk = std::get<chat::Conversation>(api.service().last_request().input);
  CHECK(dump(talk.messages) == R"([{"role":"system","content":"Be brief."},)"
                               R"({"role":"user","content":"hi"}])");
  CHECK(talk.template_arguments["enable_thinking"] == true);
  const auto pieces = lines(api.respond("POST", "/api/generate", R"({"prompt":"<a>","raw":true})"));
  CHECK(pieces.front()["thinking"] == "Hm");
  CHECK(pieces.back()["done_reason"] == "stop");
  const auto raw = std::get<chat::RawPrompt>(api.service().last_request().input);
  CHECK(std::get<std::string>(raw.prompt) == "<a>");
}

TEST_CASE("ollama: options are those of a generation") {
  DirectApi api(thought_text_and_call);
  api.post("/api/chat", std::string(kAsk) + R"(,"stream":false,"options":{"num_predict":5,
      "temperature":0.5,"top_k":3,"top_p":0.25,"min_p":0.125,"seed":11,"stop":["x","y"],
      "repeat_penalty":1.5,"presence_penalty":1,"frequency_penalty":2,"num_ctx":512}})");
  const chat::Request asked = api.service().last_request();
  CHECK(asked.max_tokens == 5);
  CHECK(asked.seed == 11);
  CHECK(asked.stop == std::vector<std::string>{"x", "y"});
  CHECK(asked.sampling.temperature == 0.5F);
  CHECK(asked.sampling.top_k == 3);
  CHECK(asked.sampling.top_p == 0.25F);
  CHECK(asked.sampling.min_p == 0.125F);
  CHECK(asked.sampling.repetition.value == 1.5F);
  CHECK(asked.sampling.repetition.context == 64);
  CHECK(asked.sampling.presence.value == 1);
  CHECK(asked.sampling.frequency.value == 2);

  api.post("/api/chat", std::string(kAsk) + R"(,"stream":false,"options":{"num_predict":-1,
      "seed":-1,"repeat_penalty":1.5,"repeat_last_n":-1}})");
  CHECK_FALSE(api.service().last_request().max_tokens);
  CHECK_FALSE(api.service().last_request().seed);
  CHECK(api.service().last_request().sampling.repetition.context == 0);
  api.post("/api/chat", std::string(kAsk) +
                            R"(,"stream":false,"options":{"repeat_penalty":2,"repeat_last_n":0}})");
  CHECK(api.service().last_request().sampling.repetition.value == 0);
}

TEST_CASE("ollama: guards are the operator's where a request names none") {
  Options options;
  options.guards.tool_loop = !options.guards.tool_loop;
  options.guards.thinking_budget = 77;
  DirectApi api(thought_text_and_call, options);
  api.post("/api/chat", std::string(kAsk) + R"(,"stream":false})");
  CHECK(api.service().last_request().guards.tool_loop == options.guards.tool_loop);
  CHECK(api.service().last_request().guards.thinking_budget == 77U);
  api.post("/api/generate", R"({"prompt":"x","stream":false,"thinking_budget":5})");
  CHECK(api.service().last_request().guards.thinking_budget == 5U);
}

TEST_CASE("ollama: what has no effect and would change an answer there is told") {
  DirectApi api(thought_text_and_call);
  const Json out = api.post("/api/chat", std::string(kAsk) + R"(,"stream":false,
      "keep_alive":"5m","options":{"mirostat":2,"typical_p":1,"num_ctx":100000,"num_gpu":1}})");
  REQUIRE(out["warnings"].size() == 2);
  CHECK(out["warnings"][0]["message"] == "options.mirostat has no effect here");
  CHECK(out["warnings"][1]["message"] ==
        "options.num_ctx is 100000, and the model has a context of 4096 here");
}

TEST_CASE("ollama: logprobs of the tokens drawn, whole as streamed, of both kinds of answers") {
  DirectApi api([](const chat::Request&) {
    const auto entry = [](const char* bytes) {
      return chat::LogprobEntry{.token = {.bytes = bytes, .logprob = -0.5F},
                                .top = {{.bytes = bytes, .logprob = -0.5F}}};
    };
    std::vector<chat::Event> out;
    for (const char* word : {"a", "b"}) {
      out.push_back(
          {.choice = 0,
           .body = chat::Delta{
               .channel = chat::Channel::kText, .text = word, .logprobs = {entry(word)}}});
    }
    out.push_back({.choice = 0,
                   .body = chat::Delta{
                       .channel = chat::Channel::kText, .text = {}, .logprobs = {entry("\xC3")}}});
    out.push_back({.choice = 0, .body = chat::End{}});
    return out;
  });
  for (const char* path : {"/api/chat", "/api/generate"}) {
    Json ask = Json::parse(std::string(kAsk) + "}");
    ask["prompt"] = "x";
    ask["logprobs"] = true;
    ask["top_logprobs"] = 1;
    Json streamed = Json::array();
    for (const Json& piece : lines(api.respond("POST", path, dump(ask)))) {
      for (const Json& entry : piece.value("logprobs", Json::array())) streamed.push_back(entry);
    }
    CHECK(api.service().last_request().logprobs == 1U);
    ask["stream"] = false;
    CHECK(api.post(path, dump(ask))["logprobs"] == streamed);
    REQUIRE(streamed.size() == 3);
    CHECK(streamed[0] == Json::parse(R"({"token":"a","logprob":-0.5,"bytes":[97],
        "top_logprobs":[{"token":"a","logprob":-0.5,"bytes":[97]}]})"));
    CHECK(streamed[2]["bytes"] == Json::array({0xC3}));
    ask.erase("logprobs");
    ask.erase("top_logprobs");
    CHECK_FALSE(api.post(path, dump(ask)).contains("logprobs"));
  }
}

TEST_CASE("ollama: calls and results without ids get some, by name and order") {
  DirectApi api(thought_text_and_call);
  api.post("/api/chat", R"({"stream":false,"messages":[{"role":"user","content":"x"},
      {"role":"assistant","thinking":"t","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},
        {"function":{"name":"g","arguments":{}}}]},
      {"role":"tool","tool_name":"g","content":"of g"},{"role":"tool","content":"of f"}]})");
  const Json messages = std::get<chat::Conversation>(api.service().last_request().input).messages;
  CHECK(messages[1]["reasoning_content"] == "t");
  CHECK(messages[1]["tool_calls"][0]["id"] == "call00000");
  CHECK(messages[1]["tool_calls"][0]["function"]["arguments"]["a"] == 1);
  CHECK(messages[2]["tool_call_id"] == "call00001");
  CHECK(messages[2]["name"] == "g");
  CHECK(messages[3]["tool_call_id"] == "call00000");
  CHECK(messages[3]["name"] == "f");
}

TEST_CASE("ollama: a last message of the assistant is gone on with") {
  DirectApi api(thought_text_and_call);
  api.post("/api/chat", R"({"stream":false,"messages":[{"role":"user","content":"x"},
      {"role":"assistant","content":"The answer"}]})");
  CHECK(std::get<chat::Conversation>(api.service().last_request().input).continues_last_message);
  api.post("/api/chat", std::string(kAsk) + R"(,"stream":false})");
  CHECK_FALSE(
      std::get<chat::Conversation>(api.service().last_request().input).continues_last_message);
}

TEST_CASE("ollama: a request with nothing to answer finds the model loaded") {
  DirectApi api;
  for (const char* body : {R"({"model":"org/tiny"})", R"({"model":"org/tiny","keep_alive":0})",
                           R"({"messages":[],"prompt":""})"}) {
    CHECK(api.post("/api/chat", body)["done_reason"] == "load");
    CHECK(api.post("/api/generate", body)["response"] == "");
  }
}

TEST_CASE(
    "ollama: options that nobody knows are counted, or refused where all fields must be known") {
  const std::string body = std::string(kAsk) + R"(,"stream":false,"options":{"top_z":1},"more":2})";
  DirectApi api(thought_text_and_call);
  CHECK(api.respond("POST", "/api/chat", body).status == 200);
  const std::string metrics = api.respond("GET", "/metrics").body;
  for (const char* name : {"options.top_z", "more"}) {
    CHECK(metrics.find(R"(tandem_ignored_fields_total{field=")" + std::string(name) + R"("} 1)") !=
          std::string::npos);
  }
  Options strict;
  strict.strict_fields = true;
  DirectApi strict_api(thought_text_and_call, strict);
  const net::Response refused = strict_api.respond("POST", "/api/chat", body);
  CHECK(refused.status == 400);
  CHECK(refused.body == R"({"error":"the field \"options.top_z\" is not known here"})");
}

TEST_CASE("ollama: a format binds the answer") {
  DirectApi api(thought_text_and_call);
  const auto schema = [&](const char* format) {
    api.post("/api/chat", std::string(kAsk) + R"(,"stream":false,"format":)" + format + "}");
    return api.service().last_request().form.schema;
  };
  CHECK(schema(R"("json")") == Json{{"type", "object"}});
  CHECK(schema(R"({"type":"array"})") == Json{{"type", "array"}});
  CHECK(schema(R"("")") == Json());
}

TEST_CASE("ollama: what is wrong or not offered is an error by name") {
  DirectApi api;
  const struct {
    const char* path;
    std::string body;
    int status;
    const char* word;
  } cases[] = {
      {"/api/chat", "{", 400, "not JSON"},
      {"/api/chat", R"({"messages":"x"})", 400, "messages"},
      {"/api/chat", R"({"messages":[1]})", 400, "messages[0]"},
      {"/api/chat", R"({"messages":[{"role":"user","content":"x","images":["aa"]}]})", 400,
       "messages[0].images"},
      {"/api/chat", std::string(kAsk) + R"(,"options":{"temperature":-1}})", 400,
       "options.temperature"},
      {"/api/chat", std::string(kAsk) + R"(,"options":[]})", 400, "options"},
      {"/api/chat", std::string(kAsk) + R"(,"think":3})", 400, "think"},
      {"/api/chat", std::string(kAsk) + R"(,"tools":[{"type":"function"}]})", 400, "tools[0]"},
      {"/api/chat", std::string(kAsk) + R"(,"logprobs":1})", 400, "logprobs"},
      {"/api/chat", std::string(kAsk) + R"(,"top_logprobs":2})", 400, "top_logprobs"},
      {"/api/generate", R"({"prompt":"x","logprobs":true,"top_logprobs":21})", 400, "20"},
      {"/api/chat", std::string(kAsk) + R"(,"logprobs":true,"top_logprobs":-1})", 400,
       "from 0 to 20, not -1"},
      {"/api/generate", R"({"prompt":"x","top_logprobs":-1})", 400, "from 0 to 20, not -1"},
      {"/api/chat", std::string(kAsk) + R"(,"tools":[{"type":"custom","custom":{"name":"t"}}]})",
       400, "tools[0].type"},
      {"/api/chat", std::string(kAsk) + R"(,"format":"xml"})", 400, "format"},
      {"/api/chat", R"({"model":"other","messages":[]})", 404, "other"},
      {"/api/generate", R"({"prompt":"x","suffix":"y"})", 400, "suffix"},
      {"/api/generate", R"({"prompt":"x","template":"y"})", 400, "template"},
      {"/api/generate", R"({"prompt":"x","images":["y"]})", 400, "images"},
      {"/api/generate", R"({"prompt":"x","context":[1]})", 400, "context"},
      {"/api/generate", R"({"prompt":1})", 400, "prompt"},
      {"/api/show", "{}", 400, "model"},
      {"/api/show", R"({"model":"other"})", 404, "other"},
  };
  for (const auto& test : cases) {
    CAPTURE(test.path);
    CAPTURE(test.body);
    const net::Response response = api.respond("POST", test.path, test.body);
    CHECK(response.status == test.status);
    const Json error = Json::parse(response.body)["error"];
    REQUIRE(error.is_string());
    CHECK(error.get<std::string>().find(test.word) != std::string::npos);
  }
}

TEST_CASE("ollama: a failure is a line with an error once the stream has begun") {
  DirectApi api([](const chat::Request&) {
    return std::vector<chat::Event>{
        {.choice = 0,
         .body = chat::Delta{.channel = chat::Channel::kText, .text = "Half", .logprobs = {}}},
        {.choice = 0,
         .body = chat::Failed{.error = {ErrorCode::kPeerLost, "it broke"}, .usage = {}}}};
  });
  const auto pieces = lines(api.respond("POST", "/api/chat", std::string(kAsk) + "}"));
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[1] == Json{{"error", "it broke"}});
  CHECK(api.respond("POST", "/api/chat", std::string(kAsk) + R"(,"stream":false})").status == 503);
  api.service().refuse(
      {ErrorCode::kTooLarge, "prompt is too long: 9 tokens > 7 maximum", "messages"});
  const auto refused = api.respond("POST", "/api/chat", std::string(kAsk) + "}");
  CHECK(refused.status == 400);
  CHECK(refused.body == R"({"error":"prompt is too long: 9 tokens > 7 maximum"})");
}

TEST_CASE("ollama: the model is listed and shown, with and without a tag") {
  DirectApi api(thought_text_and_call);
  const auto get = [&](const char* path) { return Json::parse(api.respond("GET", path).body); };
  CHECK(get("/api/tags")["models"][0]["name"] == "org/tiny:latest");
  CHECK(get("/api/ps")["models"][0]["context_length"] == 4096);
  CHECK(get("/api/version")["version"].is_string());
  for (const char* name : {"org/tiny", "org/tiny:latest"}) {
    const Json shown = api.post("/api/show", Json{{"model", name}}.dump());
    const auto family = shown["model_info"]["general.architecture"].get<std::string>();
    CHECK(shown["model_info"][family + ".context_length"] == 4096);
    CHECK(shown["capabilities"] == Json::parse(R"(["completion","tools"])"));
    const Json chat =
        api.post("/api/chat", Json{{"model", name},
                                   {"stream", false},
                                   {"messages", {{{"role", "user"}, {"content", "x"}}}}}
                                  .dump());
    CHECK(chat["model"] == name);
  }
}

}  // namespace
}  // namespace tandem::protocol::ollama
