// tandem chat: a conversation in the terminal with a running server, or with one of its own.
#include <cstdio>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/endpoint.h"
#include "app/server_json.h"
#include "app/session_options.h"
#include "net/client.h"

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  EndpointOptions endpoint;
  std::string system;
  uint32_t max_tokens = 1024;
  double temperature = 0.7;
};

/// What was typed need not be UTF-8; JSON is.
std::string written(const Json& body) {
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Posts the conversation, prints the answer as it comes and returns it.
Result<std::string> answer(const net::Client& client,
                           const Options& options,
                           const Json& messages) {
  const Json body = {{"messages", messages},
                     {"stream", true},
                     {"max_tokens", options.max_tokens},
                     {"temperature", options.temperature}};
  std::string text;
  std::optional<std::string> problem;
  const auto response =
      client.stream("/v1/chat/completions", written(body), [&](const net::SseEvent& event) {
        const Json chunk = parse_server_json(event.data);  // null: [DONE]
        if (const Json& error = member_of(chunk, "error"); !error.is_null())
          problem = error.is_object() ? text_of(error, "message") : event.data;
        const std::string piece =
            text_of(member_of(first_of(member_of(chunk, "choices")), "delta"), "content");
        text += piece;
        std::fputs(piece.c_str(), stdout);
        std::fflush(stdout);
        return true;
      });
  std::puts("");
  if (!response) return response.error();
  if (problem) return Error{ErrorCode::kInternal, *problem};
  if (response->status != 200) return Error{ErrorCode::kInvalid, error_message(*response)};
  if (!response->body.empty())
    return Error{ErrorCode::kCorrupt, "the server did not answer with a stream"};
  return text;
}

int converse(const Options& options, const net::Client& client) {
  Json messages = Json::array();
  const auto reset = [&] {
    messages = Json::array();
    if (!options.system.empty())
      messages.push_back({{"role", "system"}, {"content", options.system}});
  };
  reset();
  std::puts("/reset begins anew, /quit (or Ctrl-D) ends");
  std::string line;
  while (std::fputs("> ", stdout), std::fflush(stdout), std::getline(std::cin, line)) {
    if (line == "/quit") break;
    if (line == "/reset") {
      reset();
      continue;
    }
    if (line.empty()) continue;
    messages.push_back({{"role", "user"}, {"content", line}});
    const auto said = answer(client, options, messages);
    if (!said) {
      std::fprintf(stderr, "tandem chat: %s\n", said.error().message.c_str());
      messages.erase(messages.size() - 1);
      continue;
    }
    messages.push_back({{"role", "assistant"}, {"content", *said}});
  }
  return 0;
}

int run(const Options& options) {
  const auto endpoint = join_or_start(options.endpoint);
  if (!endpoint) return fail("chat", endpoint.error().message);
  return converse(options, (*endpoint)->client());
}

void declare_options(CLI::App& app, Options& options) {
  declare(app, options.endpoint);
  app.add_option("--system", options.system, "System prompt");
  app.add_option("--max-tokens", options.max_tokens, "Longest answer")
      ->check(within(1, std::numeric_limits<uint32_t>::max()))
      ->capture_default_str();
  app.add_option("--temp", options.temperature, "Temperature")
      ->check(within(0, 100))
      ->capture_default_str();
}

}  // namespace

Command chat() {
  return {.name = "chat",
          .summary = "Talk to the running server, or to a model of its own",
          .declare = with_options(declare_options, run)};
}

}  // namespace tandem::app
