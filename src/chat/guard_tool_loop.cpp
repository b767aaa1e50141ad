#include "chat/guard_tool_loop.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/message_forms.h"

namespace tandem::chat {
namespace {

constexpr std::string_view kSteering = "[tool loop]";
constexpr std::string_view kReminder = "<system-reminder>";
constexpr std::string_view kReminderEnd = "</system-reminder>";

std::string_view trimmed_text(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool is_users(const Json& message) {
  const std::string content = message_text(message);
  std::string_view text = trimmed_text(content);
  if (text.starts_with(kSteering)) return false;
  while (text.starts_with(kReminder)) {
    const size_t end = text.find(kReminderEnd);
    if (end == std::string_view::npos) return true;
    text = trimmed_text(text.substr(end + kReminderEnd.size()));
    if (text.empty()) return false;
  }
  return true;
}

/// Arguments as JSON with sorted keys; those that are no JSON as they are.
std::string canonical(const Json& arguments) {
  const auto sorted = [](std::string_view text) -> std::optional<std::string> {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded()) return std::nullopt;
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  if (arguments.is_string()) {
    const auto text = arguments.get<std::string>();
    return sorted(text).value_or(text);
  }
  const std::string text = arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
  return sorted(text).value_or(text);
}

struct Action {
  std::string id;
  std::string call;  // name and arguments
  std::optional<std::string> result = {};
};

void add_calls(const Json& message, std::vector<Action>& actions) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (const Json& call : *calls) {
    if (!call.is_object()) continue;
    const Json& function = call.contains("function") ? call["function"] : call;
    if (!function.is_object()) continue;
    const auto arguments = function.find("arguments");
    const auto id = call.find("id");
    actions.push_back(
        {.id = id != call.end() && id->is_string() ? id->get<std::string>() : std::string(),
         .call = fmt::format("{}\n{}", function.value("name", ""),
                             arguments == function.end() ? "{}" : canonical(*arguments))});
  }
}

/// By its id, or, without one, of the first call that has none yet.
void add_result(const Json& message, std::vector<Action>& actions) {
  const auto given = message.find("tool_call_id");
  const std::string id =
      given != message.end() && given->is_string() ? given->get<std::string>() : std::string();
  for (Action& action : actions) {
    if (action.result || (!id.empty() && action.id != id)) continue;
    action.result = std::string(trimmed_text(message_text(message)));
    return;
  }
}

/// Since the user last spoke.
std::vector<Action> last_actions(const Json& messages) {
  std::vector<Action> actions;
  for (const Json& message : messages) {
    if (!message.is_object()) continue;
    const std::string role = message.value("role", "");
    if (role == "user" && is_users(message)) actions.clear();
    if (role == "assistant") add_calls(message, actions);
    if (role == "tool") add_result(message, actions);
  }
  return actions;
}

}  // namespace

uint32_t looping_calls(const Json& messages) {
  if (!messages.is_array()) return 0;
  const std::vector<Action> actions = last_actions(messages);
  uint32_t same = 0;
  for (auto at = actions.rbegin(); at != actions.rend(); ++at) {
    if (!at->result || at->call != actions.back().call || at->result != actions.back().result) {
      break;
    }
    ++same;
  }
  return same;
}

Json steered(Json messages, uint32_t calls) {
  messages.push_back(
      {{"role", "user"},
       {"content",
        fmt::format("{} The last {} tool calls were the same, and so were their results. Another "
                    "one will not help: try something else, or say what stands in the way.",
                    kSteering, calls)}});
  return messages;
}

uint32_t loop_of(const Request& request) {
  const auto* conversation = std::get_if<Conversation>(&request.input);
  const bool is_wanted = request.guards.tool_loop || request.guards.steer_tool_loop;
  if (conversation == nullptr || !is_wanted) return 0;
  const uint32_t calls = looping_calls(conversation->messages);
  return calls < kLoopingCalls ? 0 : calls;
}

}  // namespace tandem::chat
