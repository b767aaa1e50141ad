#include "protocol/side_requests.h"

#include <doctest/doctest.h>

#include "chat/fake_service_test.h"
#include "net/client.h"
#include "net/server.h"
#include "protocol/api.h"
#include "protocol/json.h"

namespace tandem::protocol {
namespace {

struct Asked {
  std::string endpoint = "chat";
  std::string agent = {};
  Json messages = Json::array({{{"role", "user"}, {"content", "hi"}}});
  Json tools = nullptr;
  std::optional<uint32_t> max_tokens = {};
};

std::string kind_of(const Asked& asked) {
  net::Request request;
  if (!asked.agent.empty()) request.headers.push_back({"User-Agent", asked.agent});
  WireRequest wire;
  wire.request.max_tokens = asked.max_tokens;
  wire.request.input = chat::Conversation{.messages = asked.messages, .tools = asked.tools};
  return side_kind(asked.endpoint, request, wire);
}

Json said(const std::string& system, const std::string& user) {
  return Json::array(
      {{{"role", "system"}, {"content", system}}, {{"role", "user"}, {"content", user}}});
}

const Json kTools = Json::array({{{"function", {{"name", "ls"}}}}});

TEST_CASE("side requests: what clients ask for beside the work is recognised") {
  CHECK(kind_of({.messages = said("You are a title generator. Output a title.", "fix the bug")}) ==
        "title");
  CHECK(kind_of({.endpoint = "messages",
                 .agent = "claude-cli/2.1.197 (external, cli)",
                 .messages = said("Name this session.", "fix the bug"),
                 .max_tokens = 32000}) == "title");
  CHECK(kind_of({.messages = Json::array(
                     {{{"role", "user"},
                       {"content", Json::array({{{"type", "text"},
                                                 {"text",
                                                  "### Task:\nGenerate 1-3 broad tags "
                                                  "categorizing the chat"}}})}}})}) == "tags");
  CHECK(kind_of({.endpoint = "messages", .max_tokens = 1}) == "probe");
  CHECK(kind_of({.endpoint = "responses", .tools = kTools, .max_tokens = 1}) == "probe");
  CHECK(kind_of({.messages =
                     said("You are now acting as the managed memory extraction subagent.", "Go."),
                 .tools = kTools}) == "memory");
}

TEST_CASE("side requests: Qwen Code's questions beside its session are told, and no others") {
  const std::string agent = "QwenCode/0.24.4 (linux; x64)";
  const auto asks = [&](const std::string& system, const std::string& user, const Json& tools) {
    return kind_of({.agent = agent, .messages = said(system, user), .tools = tools});
  };
  CHECK(asks("Generate a concise, sentence-case title (3-7 words).", "chat", kTools) == "title");
  CHECK(asks("You generate session recaps for a CLI.", "Generate it now.", nullptr) == "summary");
  CHECK(asks("Write a short summary label of these calls.", "Label:", nullptr) == "summary");
  CHECK(asks("You are Qwen Code.", "[SUGGESTION MODE: what comes next?]", kTools) == "follow_up");
  // What its answers and calls wait for.
  CHECK(asks("You are selecting memories that will be useful.", "query", kTools) == "");
  CHECK(asks("You are a security classifier for an agent.", "call", kTools) == "");
  CHECK(asks("You are Qwen Code.", "Generate a concise, sentence-case title", kTools) == "");
  CHECK(kind_of({.messages = said("Be brief.", "[SUGGESTION MODE: what comes next?]")}) == "");
}

TEST_CASE("side requests: Open WebUI's tasks are told by the words of its templates") {
  const std::pair<const char*, const char*> tasks[] = {
      {"Generate a concise title summarizing the chat history.", "title"},
      {"Generate a concise, 3-5 word title with an emoji summarizing the chat.", "title"},
      {"Predict 3-5 useful messages this user might send next.", "follow_up"},
      {"Suggest 3-5 relevant follow-up questions.", "follow_up"},
      {"You are an autocompletion system. Continue the text.", "completion"},
      {"Respond to the user query using the provided context.", ""},
      {"Analyze the chat history to determine the necessity of generating search queries.", ""}};
  for (const auto& [words, kind] : tasks) {
    CAPTURE(words);
    const std::string text = std::string("### Task:\n") + words;
    CHECK(kind_of({.messages = Json::array({{{"role", "user"}, {"content", text}}})}) == kind);
  }
}

TEST_CASE("side requests: the work itself is none, whatever its words") {
  CHECK(kind_of({}) == "");
  CHECK(kind_of({.max_tokens = 2}) == "");
  // With tools it is an agent's, and about titles perhaps.
  CHECK(kind_of({.messages = said("You are a title generator", "x"), .tools = kTools}) == "");
  CHECK(kind_of({.messages = said("Be brief.", "Find a title for my book.")}) == "");
  CHECK(kind_of({.endpoint = "messages",
                 .agent = "claude-cli/2.1.197 (external, cli)",
                 .messages = said("You are Claude Code", "fix the bug"),
                 .tools = kTools}) == "");
  // Another client's, or another endpoint.
  CHECK(kind_of({.endpoint = "messages",
                 .messages = said("Generate a concise, sentence-case title", "x")}) == "");
  CHECK(kind_of({.endpoint = "responses", .messages = said("You are a title generator", "x")}) ==
        "");
  // A long conversation that happens to end so.
  Json long_one = said("Be brief.", "a");
  for (int i = 0; i < 4; ++i) {
    long_one.push_back({{"role", "assistant"}, {"content", "b"}});
    long_one.push_back({{"role", "user"}, {"content", "Generate a title for this conversation"}});
  }
  CHECK(kind_of({.messages = long_one}) == "");
  WireRequest raw;
  raw.request.max_tokens = 1;
  raw.request.input = chat::RawPrompt{.prompt = "x"};
  CHECK(side_kind("completions", {}, raw) == "");
}

constexpr const char* kProbe = R"({"messages":[{"role":"user","content":"quota"}],"max_tokens":1})";
constexpr const char* kUrgentProbe =
    R"({"messages":[{"role":"user","content":"quota"}],"max_tokens":1,"priority":"normal"})";
constexpr const char* kWork = R"({"messages":[{"role":"user","content":"hi"}]})";
constexpr const char* kLowWork =
    R"({"messages":[{"role":"user","content":"hi"}],"priority":"low"})";

/// A server whose model says nothing and ends by a guard.
class Served {
 public:
  explicit Served(Options options)
      : service_({.id = "m", .max_context = 4096, .vocab = 100, .has_chat_template = true},
                 [](const chat::Request&) {
                   return std::vector<chat::Event>{
                       {.choice = 0,
                        .body = chat::End{
                            .stop_text = {}, .usage = {}, .guards = {chat::Guard::kRepeatedSpan}}}};
                 }),
        api_(service_, clock_, std::move(options), {}) {
    net::Router router;
    api_.add_routes(router);
    server_ = std::move(net::Server::start({}, std::move(router))).value();
  }

  /// The priority that the service saw.
  gen::Priority ask(const char* body) {
    const auto client = net::Client::make(server_->url()).value();
    CHECK(client.post("/v1/chat/completions", body).value().status == 200);
    return service_.last_request().priority;
  }

  Json last_record() { return api_.table().to_json()["recent"][0]; }
  std::string metrics() { return api_.metrics().render(0); }

 private:
  SteadyClock clock_;
  chat::FakeService service_;
  Api api_;
  std::unique_ptr<net::Server> server_;
};

TEST_CASE("api: side requests run low, and are told apart in the list and in metrics") {
  Served served({});
  CHECK(served.ask(kProbe) == gen::Priority::kLow);
  CHECK(served.last_record()["side"] == "probe");
  CHECK(served.last_record()["guards"] == Json::array({"repeated_span"}));
  CHECK(served.ask(kUrgentProbe) == gen::Priority::kNormal);
  CHECK(served.last_record()["side"] == nullptr);
  CHECK(served.ask(kWork) == gen::Priority::kNormal);
  CHECK(served.ask(kLowWork) == gen::Priority::kLow);
  CHECK(served.last_record()["side"] == "asked");
  const std::string metrics = served.metrics();
  CHECK(metrics.find("tandem_side_requests_total{kind=\"probe\"} 1") != std::string::npos);
  CHECK(metrics.find("tandem_side_requests_total{kind=\"asked\"} 1") != std::string::npos);
  CHECK(metrics.find("tandem_guards_total{guard=\"repeated_span\"} 4") != std::string::npos);
}

TEST_CASE("api: without the rules, only priority makes a request low") {
  Options options;
  options.side_rules = false;
  Served served(options);
  CHECK(served.ask(kProbe) == gen::Priority::kNormal);
  CHECK(served.ask(kLowWork) == gen::Priority::kLow);
}

}  // namespace
}  // namespace tandem::protocol
