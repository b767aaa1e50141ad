#include "protocol/anthropic/tools.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "protocol/message_rules.h"

namespace tandem::protocol::anthropic {
namespace {

constexpr size_t kMaxNameBytes = 512;
constexpr size_t kMaxTypeBytes = 128;

/// The tool as a function; nothing when it has no schema of its own.
std::optional<Json> read_tool(Fields& tool, std::vector<chat::Warning>& warnings) {
  const auto type = tool.string("type", kMaxTypeBytes);
  if (type && *type != "custom") {
    warn(warnings, {.code = "tool_left_out",
                    .message = fmt::format("tools of type {} are not offered here",
                                           literal(shortened(*type, 40)))});
    return std::nullopt;
  }
  const auto name = tool.string("name", kMaxNameBytes);
  if (!name || name->empty()) tool.refuse("name", "must be a string that is not empty");
  const auto description = tool.string("description", SIZE_MAX);
  const Json* schema = tool.object("input_schema");
  Json function;
  function["name"] = name.value_or("");
  if (description) function["description"] = *description;
  function["parameters"] =
      schema ? *schema : Json{{"type", "object"}, {"properties", Json::object()}};
  if (tool.boolean("strict").value_or(false)) function["strict"] = true;
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

/// Whether the tools may be shown to the model.
bool read_choice(Fields& fields, chat::Conversation& conversation) {
  const Json* given = fields.object("tool_choice");
  if (!given) return true;
  Fields choice(*given, "tool_choice.");
  const auto type = choice.string("type", 32);
  if (choice.boolean("disable_parallel_tool_use").value_or(false)) {
    conversation.parallel_calls = false;
  }
  if (choice.error()) fields.keep(*choice.error());
  const bool is_forced = type == "any" || type == "tool";
  if (!is_forced && type != "auto" && type != "none") {
    fields.refuse("tool_choice.type", R"(must be "auto", "any", "tool" or "none")");
  }
  if (is_forced) conversation.calls = {.is_required = true, .field = "tool_choice"};
  if (type == "tool") {
    const auto name = choice.string("name", kMaxNameBytes);
    if (!name) choice.refuse("name", "must name a tool");
    if (choice.error()) fields.keep(*choice.error());
    conversation.calls.only = {name.value_or("")};
  }
  return type != "none";
}

}  // namespace

void read_tools(Fields& fields,
                chat::Conversation& conversation,
                std::vector<chat::Warning>& warnings) {
  Json tools = Json::array();
  const Json* given = fields.array("tools");
  for (size_t i = 0; given && i < given->size(); ++i) {
    const std::string place = fmt::format("tools[{}]", i);
    if (!(*given)[i].is_object()) {
      fields.refuse(place, "must be an object, not " + excerpt((*given)[i]));
      break;
    }
    Fields inner((*given)[i], place + ".");
    auto tool = read_tool(inner, warnings);
    if (inner.error()) fields.keep(*inner.error());
    if (tool) tools.push_back(std::move(*tool));
  }
  const bool shown = read_choice(fields, conversation);
  if (shown && !tools.empty()) conversation.tools = std::move(tools);
}

}  // namespace tandem::protocol::anthropic
