#include "protocol/side_requests.h"

#include <algorithm>
#include <variant>

#include "chat/message_forms.h"
#include "chat/request.h"

namespace tandem::protocol {
namespace {

constexpr const char* kQwenCode = "QwenCode";

bool has_any(const std::string& text, const std::vector<std::string>& words) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

bool says(const SideRule& rule, const Json& messages) {
  if (rule.in_system.empty() && rule.in_user.empty()) return true;
  std::string last_user;
  for (const Json& message : messages) {
    const std::string role = message.value("role", "");
    if (role == "user") last_user = chat::message_text(message);
    const bool is_system = role == "system" || role == "developer";
    if (is_system && has_any(chat::message_text(message), rule.in_system)) return true;
  }
  return has_any(last_user, rule.in_user);
}

bool is_from(const SideRule& rule, const net::Request& request) {
  const std::string_view client(rule.client);
  return request.header("user-agent").find(client) != std::string_view::npos ||
         request.header("originator").find(client) != std::string_view::npos;
}

/// Without what stands for itself: a system message.
size_t spoken(const Json& messages) {
  size_t count = 0;
  for (const Json& message : messages) {
    const std::string role = message.value("role", "");
    if (role != "system" && role != "developer") ++count;
  }
  return count;
}

bool fits(const SideRule& rule,
          std::string_view endpoint,
          const net::Request& request,
          const chat::Conversation& conversation,
          const WireRequest& wire) {
  const bool has_tools = conversation.tools.is_array() && !conversation.tools.empty();
  if (has_tools && !rule.may_have_tools) return false;
  if (*rule.endpoint != '\0' && endpoint != rule.endpoint) return false;
  if (rule.most_tokens > 0 && wire.request.max_tokens.value_or(UINT32_MAX) > rule.most_tokens) {
    return false;
  }
  if (rule.most_messages > 0 && spoken(conversation.messages) > rule.most_messages) return false;
  return (*rule.client == '\0' || is_from(rule, request)) && says(rule, conversation.messages);
}

}  // namespace

const std::vector<SideRule>& side_rules() {
  static const std::vector<SideRule> kRules = {
      // One token is no answer: Claude Code asks for its quota so, counts tokens where a server
      // cannot, and Codex looks whether somebody is there.
      {.kind = "probe", .most_tokens = 1, .most_messages = 1, .may_have_tools = true},
      // Claude Code's work has tools; what has none is a title or a topic.
      {.kind = "title", .client = "claude-cli", .endpoint = "messages", .most_messages = 2},
      // opencode.
      {.kind = "title",
       .endpoint = "chat",
       .most_messages = 3,
       .in_system = {"You are a title generator"},
       .in_user = {"Generate a title for this conversation"}},
      {.kind = "summary",
       .endpoint = "chat",
       .in_system = {"Summarize what was done in this conversation"}},
      // Open WebUI writes its tasks into one user message: 0.12's words, and older ones.
      {.kind = "title",
       .endpoint = "chat",
       .most_messages = 1,
       .in_user = {"### Task:\nGenerate a concise title",
                   "### Task:\nGenerate a concise, 3-5 word title"}},
      {.kind = "tags",
       .endpoint = "chat",
       .most_messages = 1,
       .in_user = {"### Task:\nGenerate 1-3 broad tags"}},
      {.kind = "follow_up",
       .endpoint = "chat",
       .most_messages = 1,
       .in_user = {"### Task:\nPredict 3-5 useful messages",
                   "### Task:\nSuggest 3-5 relevant follow-up"}},
      {.kind = "completion",
       .endpoint = "chat",
       .most_messages = 1,
       .in_user = {"### Task:\nYou are an autocompletion system."}},
      // Qwen Code's agents that keep memories and skills beside a session, after its turns.
      {.kind = "memory",
       .endpoint = "chat",
       .may_have_tools = true,
       .in_system = {"managed memory extraction subagent", "managed memory dream",
                     "reviewing this conversation to extract reusable skills"}},
      // Its questions beside the work, of which the title is asked for as a call of a tool, and
      // what the user may type next in the session itself.
      {.kind = "title",
       .client = kQwenCode,
       .endpoint = "chat",
       .most_messages = 1,
       .may_have_tools = true,
       .in_system = {"Generate a concise, sentence-case title"}},
      {.kind = "summary",
       .client = kQwenCode,
       .endpoint = "chat",
       .in_system = {"You generate session recaps", "Write a short summary label"}},
      {.kind = "follow_up",
       .client = kQwenCode,
       .endpoint = "chat",
       .may_have_tools = true,
       .in_user = {"[SUGGESTION MODE:"}},
  };
  return kRules;
}

std::string side_kind(std::string_view endpoint,
                      const net::Request& request,
                      const WireRequest& wire) {
  const auto* conversation = std::get_if<chat::Conversation>(&wire.request.input);
  if (conversation == nullptr || !conversation->messages.is_array()) return {};
  for (const SideRule& rule : side_rules()) {
    if (fits(rule, endpoint, request, *conversation, wire)) return rule.kind;
  }
  return {};
}

}  // namespace tandem::protocol
