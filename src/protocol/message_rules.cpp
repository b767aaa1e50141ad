#include "protocol/message_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tandem::protocol {
namespace {

constexpr std::string_view kPrefix = "x-anthropic-";
constexpr std::string_view kSpace = " \t\r\n";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

size_t end_of_word(std::string_view text, size_t at) {
  while (at < text.size() && is_word(text[at])) ++at;
  return at;
}

/// Where "key=value" and the semicolon behind it end; `at` when there is none.
size_t end_of_pair(std::string_view text, size_t at) {
  const size_t key = std::min(text.find_first_not_of(' ', at), text.size());
  const size_t equals = end_of_word(text, key);
  if (equals == key || equals >= text.size() || text[equals] != '=') return at;
  const size_t end = std::min(text.find_first_of("; \t\r\n", equals), text.size());
  return end < text.size() && text[end] == ';' ? end + 1 : end;
}

}  // namespace

std::string_view without_request_line(std::string_view system) {
  if (!system.starts_with(kPrefix)) return system;
  const size_t colon = end_of_word(system, 0);
  if (colon >= system.size() || system[colon] != ':') return system;
  size_t end = colon + 1;
  while (true) {
    const size_t next = end_of_pair(system, end);
    if (next == end) break;
    end = next;
  }
  if (end == colon + 1) return system;
  return system.substr(std::min(system.find_first_not_of(kSpace, end), system.size()));
}

void drop_request_line(Json& messages) {
  if (messages.empty()) return;
  Json& first = messages.front();
  if (first["role"] != "system" && first["role"] != "developer") return;
  const auto text = first["content"].get<std::string>();
  const std::string_view rest = without_request_line(text);
  if (rest.size() == text.size()) return;
  if (rest.empty()) {
    messages.erase(0);
  } else {
    first["content"] = rest;
  }
}

void name_tool_results(Json& messages) {
  std::map<std::string, std::string> names;
  for (Json& message : messages) {
    if (message["role"] == "tool" && !message.contains("name") &&
        message.contains("tool_call_id")) {
      const auto name = names.find(message["tool_call_id"].get<std::string>());
      if (name != names.end()) message["name"] = name->second;
    }
    const auto calls = message.find("tool_calls");
    if (calls == message.end()) continue;
    for (const Json& call : *calls) {
      if (call.contains("id")) names[call["id"]] = call["function"]["name"];
    }
  }
}

bool ends_with_answer(const Json& messages) {
  if (messages.empty()) return false;
  const Json& last = messages.back();
  return last["role"] == "assistant" && !last.contains("tool_calls") && last["content"] != "";
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::string left_out_of_result(std::string_view type, std::vector<chat::Warning>& warnings) {
  warn(warnings, {.code = "left_out_of_tool_result",
                  .message = "results of tools are text here: other parts were left out"});
  return fmt::format("[{} left out: this model reads text only]", shortened(type, 40));
}

void warn(std::vector<chat::Warning>& warnings, chat::Warning warning) {
  if (std::ranges::find(warnings, warning) == warnings.end()) {
    warnings.push_back(std::move(warning));
  }
}

}  // namespace tandem::protocol
