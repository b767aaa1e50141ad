// Checks of the Responses wire.
#include <fmt/format.h>

#include "app/checks/checks.h"
#include "app/server_json.h"

namespace tandem::app::checks {
namespace {

constexpr const char* kResponsesPath = "/v1/responses";

Json response_body(const Target& target) {
  return {{"model", target.model},
          {"input", kQuestion},
          {"max_output_tokens", kTokens},
          {"temperature", 0},
          {"store", false}};
}

/// The text of all messages.
std::string output_text(const Json& response) {
  std::string text;
  for (const Json& item : member_of(response, "output")) {
    if (text_of(item, "type") != "message") continue;
    for (const Json& part : member_of(item, "content")) text += text_of(part, "text");
  }
  return text;
}

bool ends_response(const std::string& status) {
  return status == "completed" || status == "incomplete";
}

/// What is wrong with a response; empty when nothing is.
std::string wrong_response(const Json& response) {
  if (!ends_response(text_of(response, "status")))
    return fmt::format("status is \"{}\"", text_of(response, "status"));
  if (member_of(response, "output").empty()) return "there is no output";
  const Json& usage = member_of(response, "usage");
  const uint64_t sum = number_of(usage, "input_tokens") + number_of(usage, "output_tokens");
  if (sum == 0 || number_of(usage, "total_tokens") != sum) return "total_tokens is not the sum";
  return {};
}

}  // namespace

Verdict responses(Target& target) {
  const auto answer = target.post(kResponsesPath, response_body(target));
  if (!answer) return failed(answer.error().message);
  if (answer->status != 200) return failed(answer->told());
  if (const std::string wrong = wrong_response(answer->body); !wrong.empty()) return failed(wrong);
  return ok(text_of(answer->body, "status"));
}

Verdict responses_stream(Target& target) {
  Json body = response_body(target);
  body["stream"] = true;
  const auto stream = target.stream(kResponsesPath, body);
  if (!stream) return failed(stream.error().message);
  if (stream->data.empty()) return failed(fmt::format("no stream: {}", stream->head.told()));
  std::string text;
  size_t done = 0;
  for (size_t i = 0; i < stream->data.size(); ++i) {
    const Json& event = stream->data[i];
    const std::string type = text_of(event, "type");
    if (type != stream->events[i].event)
      return failed(fmt::format("event {} is called {}", type, stream->events[i].event));
    if (number_of(event, "sequence_number") != i)
      return failed(fmt::format("sequence_number of event {} is wrong", i));
    if (type == "response.output_text.delta") text += text_of(event, "delta");
    if (type == "response.output_item.done") ++done;
  }
  if (text_of(stream->data.front(), "type") != "response.created")
    return failed("the first event is not response.created");
  const Json& last = member_of(stream->data.back(), "response");
  if (const std::string wrong = wrong_response(last); !wrong.empty()) return failed(wrong);
  if (output_text(last) != text) return failed("the pieces are not the whole text");
  if (done != member_of(last, "output").size()) return failed("an item was not ended");
  return ok(fmt::format("{} events", stream->events.size()));
}

}  // namespace tandem::app::checks
