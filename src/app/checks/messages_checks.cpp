// Checks of the Messages wire.
#include <fmt/format.h>

#include "app/checks/checks.h"
#include "app/server_json.h"

namespace tandem::app::checks {
namespace {

constexpr const char* kMessagesPath = "/v1/messages";

uint64_t input_of(const Json& usage) {
  return number_of(usage, "input_tokens") + number_of(usage, "cache_read_input_tokens") +
         number_of(usage, "cache_creation_input_tokens");
}

bool ends_message(const std::string& reason) {
  return reason == "end_turn" || reason == "max_tokens" || reason == "tool_use" ||
         reason == "stop_sequence";
}

std::string text_of_blocks(const Json& message) {
  std::string text;
  for (const Json& block : member_of(message, "content")) text += text_of(block, "text");
  return text;
}

/// Follows a stream's blocks: one after another, each begun and ended.
struct Blocks {
  std::string text;
  std::string reason;
  std::string wrong;
  bool open = false;
  size_t count = 0;

  void take(const std::string& type, const Json& event) {
    const bool starts = type == "content_block_start";
    const bool stops = type == "content_block_stop";
    if (!starts && !stops && type != "content_block_delta") {
      if (type == "message_delta") reason = text_of(member_of(event, "delta"), "stop_reason");
      return;
    }
    if (starts == open) wrong = fmt::format("{} of block {} is out of order", type, count);
    if (number_of(event, "index") != count) wrong = fmt::format("{} has a wrong index", type);
    text += text_of(member_of(event, "delta"), "text");
    if (stops) ++count;
    if (starts || stops) open = starts;
  }
};

}  // namespace

Verdict messages(Target& target) {
  const auto answer = target.post(kMessagesPath, body_of(target, kQuestion, kTokens));
  if (!answer) return failed(answer.error().message);
  if (answer->status != 200) return failed(answer->told());
  const std::string reason = text_of(answer->body, "stop_reason");
  if (!ends_message(reason)) return failed(fmt::format("stop_reason is \"{}\"", reason));
  if (member_of(answer->body, "content").empty()) return failed("the message is empty");
  const Json& usage = member_of(answer->body, "usage");
  if (input_of(usage) == 0 || number_of(usage, "output_tokens") == 0)
    return failed("usage counts no tokens");
  return ok(fmt::format("{} tokens, {}", number_of(usage, "output_tokens"), reason));
}

Verdict messages_stream(Target& target) {
  Json body = body_of(target, kQuestion, kTokens);
  const auto whole = target.post(kMessagesPath, body);
  if (!whole) return failed(whole.error().message);
  body["stream"] = true;
  const auto stream = target.stream(kMessagesPath, body);
  if (!stream) return failed(stream.error().message);
  if (stream->data.empty()) return failed(fmt::format("no stream: {}", stream->head.told()));
  Blocks blocks;
  for (size_t i = 0; i < stream->data.size(); ++i) {
    const std::string type = text_of(stream->data[i], "type");
    if (type != stream->events[i].event)
      return failed(fmt::format("event {} is called {}", type, stream->events[i].event));
    blocks.take(type, stream->data[i]);
  }
  if (text_of(stream->data.front(), "type") != "message_start")
    return failed("the first event is not message_start");
  if (text_of(stream->data.back(), "type") != "message_stop")
    return failed("the last event is not message_stop");
  if (!blocks.wrong.empty()) return failed(blocks.wrong);
  if (blocks.open) return failed("the last block was not ended");
  if (!ends_message(blocks.reason))
    return failed(fmt::format("stop_reason is \"{}\"", blocks.reason));
  if (blocks.text != text_of_blocks(whole->body))
    return failed("at temperature 0 the stream says something else than the whole message");
  return ok(fmt::format("{} events, the same text", stream->events.size()));
}

Verdict count_tokens(Target& target) {
  Json body = body_of(target, kQuestion, 1);
  body["system"] = "Be brief.";
  const auto message = target.post(kMessagesPath, body);
  if (!message) return failed(message.error().message);
  body.erase("max_tokens");
  body.erase("temperature");
  const auto counted = target.post("/v1/messages/count_tokens", body);
  if (!counted) return failed(counted.error().message);
  if (counted->status != 200) return failed(counted->told());
  const uint64_t count = number_of(counted->body, "input_tokens");
  const uint64_t used = input_of(member_of(message->body, "usage"));
  if (count == 0 || count != used)
    return failed(fmt::format("counted {} tokens, a message had {}", count, used));
  return ok(fmt::format("{} tokens", count));
}

}  // namespace tandem::app::checks
