// Checks of chat completions.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/checks/checks.h"
#include "app/server_json.h"

namespace tandem::app::checks {
namespace {

constexpr const char* kChatPath = "/v1/chat/completions";

const Json& choice_of(const Json& body) { return first_of(member_of(body, "choices")); }

bool ends_chat(const std::string& reason) {
  constexpr std::array kReasons = {"stop", "length", "tool_calls"};
  return std::ranges::find(kReasons, reason) != kReasons.end();
}

/// What is wrong with a usage; empty when nothing is.
std::string wrong_usage(const Json& usage) {
  const uint64_t prompt = number_of(usage, "prompt_tokens");
  const uint64_t answer = number_of(usage, "completion_tokens");
  if (prompt == 0 || answer == 0) return "usage counts no tokens";
  if (number_of(usage, "total_tokens") != prompt + answer) return "total_tokens is not the sum";
  if (number_of(member_of(usage, "prompt_tokens_details"), "cached_tokens") > prompt)
    return "more tokens are cached than the prompt has";
  return {};
}

struct Joined {
  std::string text;
  std::string reason;
  Json usage;
};

Joined join(const Stream& stream) {
  Joined joined;
  for (const Json& chunk : stream.data) {
    const Json& choice = choice_of(chunk);
    joined.text += text_of(member_of(choice, "delta"), "content");
    if (const std::string reason = text_of(choice, "finish_reason"); !reason.empty())
      joined.reason = reason;
    if (member_of(chunk, "usage").is_object()) joined.usage = member_of(chunk, "usage");
  }
  return joined;
}

Json time_tool() {
  return Json::parse(R"([{"type": "function", "function": {"name": "get_time",
    "description": "Tells the time in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])");
}

Verdict check_call(const Json& call) {
  const Json& function = member_of(call, "function");
  if (text_of(call, "id").empty()) return failed("a call has no id");
  if (text_of(function, "name") != "get_time")
    return failed(fmt::format("a tool was called that is none: {}", text_of(function, "name")));
  if (!parse_server_json(text_of(function, "arguments")).is_object())
    return failed(
        fmt::format("a call's arguments are no JSON object: {}", text_of(function, "arguments")));
  return ok("");
}

/// Gives the call's result back, as clients do.
Verdict go_round(const Target& target, Json body, const Json& message) {
  body["messages"].push_back(message);
  for (const Json& call : member_of(message, "tool_calls")) {
    body["messages"].push_back(
        {{"role", "tool"}, {"tool_call_id", text_of(call, "id")}, {"content", "12:30"}});
  }
  const auto answer = target.post(kChatPath, body);
  if (!answer) return failed(answer.error().message);
  if (answer->status != 200) return failed(fmt::format("with a tool's result: {}", answer->told()));
  return ok("called, and told the result");
}

}  // namespace

Verdict chat(Target& target) {
  const auto answer = target.post(kChatPath, body_of(target, kQuestion, kTokens));
  if (!answer) return failed(answer.error().message);
  if (answer->status != 200) return failed(answer->told());
  const Json& choice = choice_of(answer->body);
  const Json& message = member_of(choice, "message");
  if (text_of(message, "content").empty() && text_of(message, "reasoning_content").empty())
    return failed("the answer is empty");
  const std::string reason = text_of(choice, "finish_reason");
  if (!ends_chat(reason)) return failed(fmt::format("finish_reason is \"{}\"", reason));
  const Json& usage = member_of(answer->body, "usage");
  if (const std::string wrong = wrong_usage(usage); !wrong.empty()) return failed(wrong);
  return ok(fmt::format("{} tokens, {}", number_of(usage, "completion_tokens"), reason));
}

Verdict chat_stream(Target& target) {
  Json body = body_of(target, kQuestion, kTokens);
  const auto whole = target.post(kChatPath, body);
  if (!whole) return failed(whole.error().message);
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const auto stream = target.stream(kChatPath, body);
  if (!stream) return failed(stream.error().message);
  if (stream->data.empty()) return failed(fmt::format("no stream: {}", stream->head.told()));
  if (!stream->is_done()) return failed("the stream did not end with [DONE]");
  const Joined joined = join(*stream);
  if (!ends_chat(joined.reason))
    return failed(fmt::format("the stream's finish_reason is \"{}\"", joined.reason));
  if (const std::string wrong = wrong_usage(joined.usage); !wrong.empty()) return failed(wrong);
  const std::string expected = text_of(member_of(choice_of(whole->body), "message"), "content");
  if (joined.text != expected)
    return failed(fmt::format("at temperature 0 the stream says \"{}\", the whole answer \"{}\"",
                              joined.text, expected));
  return ok(fmt::format("{} events, the same text", stream->events.size()));
}

Verdict tools(Target& target) {
  Json body = body_of(target, "What time is it in Oslo? Use the tool.", kTokens);
  body["tools"] = time_tool();
  const auto answer = target.post(kChatPath, body);
  if (!answer) return failed(answer.error().message);
  if (answer->status != 200) return failed(answer->told());
  const Json& choice = choice_of(answer->body);
  const Json& message = member_of(choice, "message");
  const Json& calls = member_of(message, "tool_calls");
  if (!calls.is_array() || calls.empty()) return ok("taken; the model answered in words");
  for (const Json& call : calls) {
    if (Verdict verdict = check_call(call); verdict.state != Verdict::State::kOk) return verdict;
  }
  const std::string reason = text_of(choice, "finish_reason");
  if (reason != "tool_calls" && reason != "length")
    return failed(fmt::format("finish_reason of calls is \"{}\"", reason));
  return go_round(target, body, message);
}

Verdict thinking(Target& target) {
  Json body = body_of(target, kQuestion, kTokens);
  body["reasoning_effort"] = "low";
  const auto answer = target.post(kChatPath, body);
  if (!answer) return failed(answer.error().message);
  if (answer->status != 200) return failed(answer->told());
  const Json& message = member_of(choice_of(answer->body), "message");
  const std::string text = text_of(message, "content");
  for (const char* marker : {"<think>", "</think>", "[THINK]", "<|channel|>"}) {
    if (text.find(marker) != std::string::npos)
      return failed(fmt::format("{} stands in the text: {}", marker, text));
  }
  const std::string thought = text_of(message, "reasoning_content");
  if (thought.empty()) return ok("taken; the model did not think");
  const Json& details = member_of(member_of(answer->body, "usage"), "completion_tokens_details");
  if (number_of(details, "reasoning_tokens") == 0)
    return failed("there is thinking, but reasoning_tokens is 0");
  return ok(fmt::format("{} tokens of thinking", number_of(details, "reasoning_tokens")));
}

Verdict structured(Target& target) {
  Json body = body_of(target, "Name a colour as JSON.", 200);
  body["response_format"] = Json::parse(R"({"type": "json_schema", "json_schema": {"name": "colour",
    "strict": true, "schema": {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"], "additionalProperties": false}}})");
  const auto answer = target.post(kChatPath, body);
  if (!answer) return failed(answer.error().message);
  const std::string code = text_of(member_of(answer->body, "error"), "code");
  if (answer->status == 400 && code == "unsupported_value") return skipped(answer->told());
  if (answer->status != 200) return failed(answer->told());
  const std::string text = text_of(member_of(choice_of(answer->body), "message"), "content");
  const std::string colour = text_of(parse_server_json(text), "colour");
  if (colour != "red" && colour != "blue")
    return failed(fmt::format("the answer does not fit its schema: {}", text));
  return ok(colour);
}

}  // namespace tandem::app::checks
