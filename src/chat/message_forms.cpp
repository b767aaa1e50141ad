#include "chat/message_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tandem::chat {
namespace {

Error bad_messages(std::string message) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message), .field = "messages"};
}

std::string role_of(const Json& message) { return message["role"].get<std::string>(); }

bool is_system(const Json& message) {
  return message["role"] == "system" || message["role"] == "developer";
}

bool has_calls(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

Result<std::string> join_parts(const Json& parts) {
  std::string text;
  for (const Json& part : parts) {
    const bool is_text = part.is_object() && part.value("type", Json()) == "text" &&
                         part.contains("text") && part["text"].is_string();
    if (!is_text) return bad_messages("only content parts of type \"text\" are supported");
    text += part["text"].get<std::string>();
  }
  return text;
}

void parse_arguments(Json& message) {
  if (!has_calls(message)) return;
  for (Json& call : message["tool_calls"]) {
    if (!call.is_object()) continue;
    Json& function = call.contains("function") ? call["function"] : call;
    if (!function.is_object() || !function.contains("arguments")) continue;
    Json& arguments = function["arguments"];
    if (!arguments.is_string()) continue;
    Json parsed = Json::parse(arguments.get<std::string>(), nullptr, false);
    if (!parsed.is_discarded()) arguments = std::move(parsed);
  }
}

Json with_text_arguments(Json messages) {
  for (Json& message : messages) {
    if (!has_calls(message)) continue;
    for (Json& call : message["tool_calls"]) {
      if (!call.is_object()) continue;
      Json& function = call.contains("function") ? call["function"] : call;
      if (!function.is_object() || !function.contains("arguments")) continue;
      Json& arguments = function["arguments"];
      if (!arguments.is_string()) arguments = arguments.dump();
    }
  }
  return messages;
}

std::string joined(const Json& first, const Json& second) {
  const auto a = first["content"].get<std::string>();
  const auto b = second["content"].get<std::string>();
  if (a.empty() || b.empty()) return a + b;
  return a + "\n\n" + b;
}

/// Neighbours that a template may want as one: systems, users, assistants without calls.
Json merge_neighbours(const Json& messages) {
  Json merged = Json::array();
  for (const Json& message : messages) {
    const bool mergeable = !merged.empty() && merged.back()["role"] == message["role"] &&
                           message["role"] != "tool" && !has_calls(merged.back()) &&
                           !has_calls(message);
    if (mergeable) {
      merged.back()["content"] = joined(merged.back(), message);
    } else {
      merged.push_back(message);
    }
  }
  return merged;
}

/// System messages after the first message speak as the user.
Json late_systems_as_user(Json messages) {
  for (size_t i = 1; i < messages.size(); ++i) {
    if (is_system(messages[i])) messages[i]["role"] = "user";
  }
  return merge_neighbours(messages);
}

/// For templates without a system role: its text opens the first user message.
Json systems_in_user(Json messages) {
  for (Json& message : messages) {
    if (is_system(message)) message["role"] = "user";
  }
  return merge_neighbours(messages);
}

/// For templates that want an answer before each later user message and none before the first:
/// tool results before any call, and answers before any question, speak as the user.
Json opening_as_user(Json messages) {
  for (Json& message : messages) {
    if (has_calls(message) || message["role"] == "user") break;
    if (message["role"] == "tool" || message["role"] == "assistant") message["role"] = "user";
  }
  return merge_neighbours(messages);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace

std::string message_text(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end()) return {};
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  if (!content->is_array()) return text;
  for (const Json& part : *content) {
    const auto words = part.is_object() ? part.find("text") : part.end();
    if (words != part.end() && words->is_string()) text += words->get_ref<const std::string&>();
  }
  return text;
}

Result<Json> plain_messages(const Json& messages, bool knows_developer) {
  if (!messages.is_array()) return bad_messages("messages must be a list");
  Json plain = Json::array();
  for (const Json& message : messages) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      return bad_messages("each message must be an object with a role");
    }
    Json copy = message;
    copy.erase(kTurnHandle);
    Json& content = copy["content"];
    if (content.is_null()) content = "";
    if (content.is_array()) {
      auto text = join_parts(content);
      if (!text) return text.error();
      content = *text;
    }
    if (!content.is_string()) {
      return bad_messages(
          fmt::format("the content of a message of role \"{}\" must be a string or a "
                      "list of text parts",
                      role_of(message)));
    }
    if (!knows_developer && copy["role"] == "developer") copy["role"] = "system";
    parse_arguments(copy);
    plain.push_back(std::move(copy));
  }
  return plain;
}

void name_thinking(Json& messages) {
  for (Json& message : messages) {
    const auto given = message.find("reasoning_content");
    if (given == message.end() || !given->is_string() || message.contains("thinking")) continue;
    Json thinking{{"content", *given}};
    if (has_calls(message)) {
      thinking["content"] = joined(thinking, message);
      message["content"] = "";
    }
    if (thinking["content"] != "") message["thinking"] = thinking["content"];
  }
}

void leave_out_blanks(Json& messages) {
  for (Json& message : messages) {
    if (has_calls(message) && message["content"] == "") message["content"] = nullptr;
  }
}

Json form_of(const Json& messages, size_t form) {
  constexpr size_t kOfRoles = kMessageForms / 2;
  if (form >= kOfRoles) return with_text_arguments(form_of(messages, form - kOfRoles));
  switch (form) {
    case 1:
      return merge_neighbours(messages);
    case 2:
      return late_systems_as_user(messages);
    case 3:
      return systems_in_user(messages);
    case 4:
      return opening_as_user(systems_in_user(messages));
    default:
      return messages;
  }
}

bool has_late_system_texts(std::string_view prompt, const Json& messages) {
  for (size_t i = 1; i < messages.size(); ++i) {
    if (!is_system(messages[i])) continue;
    const auto text = messages[i]["content"].get<std::string>();
    if (prompt.find(trimmed(text)) == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace tandem::chat
