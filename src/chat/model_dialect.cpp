#include "chat/model_dialect.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace tandem::chat {
namespace {

bool has_tools(const Json& tools) { return tools.is_array() && !tools.empty(); }

std::string described(const Json& tools, const dialect::Dialect& dialect) {
  std::string text = "You have tools. Each line is the JSON description of one:\n<tools>\n";
  for (const Json& tool : tools) {
    text += tool.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  const std::vector<dialect::Call> example = {
      {.name = "NAME", .arguments = Json{{"ARGUMENT", "VALUE"}}}};
  return text +
         "</tools>\n\nTo use a tool, write its name and its arguments like this, and wait for the "
         "result, which comes between <tool_response> tags:\n" +
         dialect::render(dialect.layout, example);
}

std::string text_of_calls(const Json& calls, const dialect::Dialect& dialect) {
  std::vector<dialect::Call> list;
  for (const Json& call : calls) {
    const Json& function = call.contains("function") ? call["function"] : call;
    if (!function.is_object() || !function.contains("name")) continue;
    Json arguments = function.value("arguments", Json::object());
    if (!arguments.is_object()) arguments = Json::object();
    list.push_back({.name = function.value("name", ""), .arguments = std::move(arguments)});
  }
  return dialect::render(dialect.layout, list);
}

}  // namespace

const dialect::Dialect& dialect_of(const text::ModelText& model, const std::string& name) {
  if (!name.empty()) {
    const dialect::Dialect* named = dialect::find(name);
    TANDEM_CHECK(named != nullptr, "there is no dialect \"{}\"", name);
    return *named;
  }
  const dialect::Dialect* shown = dialect::recognize(
      {.chat_template = model.chat_template ? model.chat_template->source() : std::string(),
       .has_token =
           [&model](std::string_view token) { return model.tokenizer->id(token).has_value(); },
       .parser_name = model.tool_parser});
  return shown == nullptr ? dialect::fallback() : *shown;
}

std::shared_ptr<dialect::Rules> parser_rules(const Conversation* conversation,
                                             const dialect::Dialect& dialect,
                                             const text::ModelText& model,
                                             bool ends_after_calls,
                                             std::string behind_thinking) {
  auto rules = std::make_shared<dialect::Rules>();
  if (conversation == nullptr) return rules;
  rules->dialect = &dialect;
  rules->tools = dialect::Tools(conversation->tools);
  rules->has_calls = has_tools(conversation->tools);
  rules->behind_thinking = std::move(behind_thinking);
  rules->ends_after_calls = ends_after_calls;
  rules->only_first_call = ends_after_calls && !conversation->parallel_calls;
  if (model.thinking) {
    rules->thinking = {.start = model.thinking->start, .end = model.thinking->end};
  }
  return rules;
}

bool hides_tools(const Conversation& conversation, const text::ModelText& model) {
  return has_tools(conversation.tools) && model.chat_template != nullptr &&
         !model.chat_template->mentions("tools");
}

Json with_described_tools(Json messages, const Json& tools, const dialect::Dialect& dialect) {
  const std::string about = described(tools, dialect);
  const bool has_system =
      !messages.empty() && (messages[0]["role"] == "system" || messages[0]["role"] == "developer");
  Json result = Json::array();
  if (!has_system) result.push_back({{"role", "system"}, {"content", about}});
  for (Json& message : messages) {
    auto content = message["content"].get<std::string>();
    if (has_system && result.empty()) content += "\n\n" + about;
    if (message["role"] == "tool") {
      message = {{"role", "user"}};
      content = "<tool_response>\n" + content + "\n</tool_response>";
    } else if (message.contains("tool_calls") && message["tool_calls"].is_array()) {
      const std::string calls = text_of_calls(message["tool_calls"], dialect);
      content += (content.empty() ? "" : "\n") + calls;
      message.erase("tool_calls");
    }
    message["content"] = content;
    result.push_back(std::move(message));
  }
  return result;
}

}  // namespace tandem::chat
