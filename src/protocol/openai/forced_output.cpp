#include "protocol/openai/forced_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/answer_form.h"
#include "protocol/openai/responses_tools.h"

namespace tandem::protocol::openai {
namespace {

constexpr size_t kMostNameBytes = 512;
/// Of the wire whose schemas stand in a "json_schema".
constexpr std::string_view kChatFormat = "response_format";

/// As the model sees it: of {"type", TYPE: {"name"}} or {"type", "name", "namespace"}.
std::optional<std::string> tool_name(const Json& entry, const std::string& place, Fields& fields) {
  if (!entry.is_object()) {
    fields.refuse(place, "must be an object, not " + excerpt(entry));
    return std::nullopt;
  }
  Fields outer(entry, place + ".");
  const auto type = outer.string("type", 64);
  if (type != "function" && type != "custom") {
    outer.refuse("type", R"(must be "function" or "custom" here)");
  }
  const Json* nested = outer.error() ? nullptr : outer.object(*type);
  Fields inner(nested ? *nested : entry, place + ".");
  const auto name = inner.string("name", kMostNameBytes);
  const auto name_space = inner.string("namespace", kMostNameBytes);
  if (!name || name->empty()) inner.refuse("name", "must name a tool");
  if (outer.error()) fields.keep(*outer.error());
  if (inner.error()) fields.keep(*inner.error());
  if (fields.error()) return std::nullopt;
  return ResponsesTools::joined(name_space.value_or(""), *name);
}

std::string name_of(const Json& tool) { return tool["function"].value("name", ""); }

/// Leaves the tools of these names, each of which there must be.
void show_only(const std::vector<std::string>& names, Fields& fields, Json& tools) {
  for (const std::string& name : names) {
    if (std::ranges::find(tools, name, name_of) != tools.end()) continue;
    return fields.refuse("tool_choice", fmt::format("allows the tool {}, which is not in 'tools'",
                                                    literal(shortened(name, 80))));
  }
  Json shown = Json::array();
  for (const Json& tool : tools) {
    if (std::ranges::find(names, name_of(tool)) != names.end()) shown.push_back(tool);
  }
  tools = std::move(shown);
}

void read_allowed_tools(Fields& fields, const Json& choice, chat::Conversation& conversation) {
  const std::string place = "tool_choice";
  Fields outer(choice, place + ".");
  const Json* nested = outer.object("allowed_tools");
  Fields inner(nested ? *nested : choice, place + ".");
  const auto mode = inner.string("mode", 32);
  const Json* tools = inner.array("tools");
  if (!mode) inner.refuse("mode", R"(is missing: it must be "auto" or "required")");
  if (mode && *mode != "auto" && *mode != "required") {
    inner.refuse_value("mode", R"(must be "auto" or "required")");
  }
  if (!tools || tools->empty()) inner.refuse("tools", "must name at least one tool");
  if (inner.error()) return fields.keep(*inner.error());
  std::vector<std::string> names;
  for (size_t i = 0; i < tools->size(); ++i) {
    auto name = tool_name((*tools)[i], fmt::format("{}.tools[{}]", place, i), fields);
    if (!name) return;
    names.push_back(*std::move(name));
  }
  if (mode == "required") {
    conversation.calls = {.is_required = true, .only = std::move(names), .field = place};
  } else {
    show_only(names, fields, conversation.tools);
  }
}

}  // namespace

void read_tool_choice(Fields& fields, chat::Conversation& conversation) {
  const Json* choice = fields.any("tool_choice");
  if (!choice || *choice == "auto") return;
  if (*choice == "none") {
    conversation.tools = nullptr;
    return;
  }
  const bool is_required = *choice == "required";
  if (!is_required && !choice->is_object()) {
    return fields.refuse_value("tool_choice",
                               R"(must be "auto", "none", "required" or name a tool)");
  }
  if (conversation.tools.is_null()) return fields.refuse("tool_choice", "needs tools");
  if (is_required) {
    conversation.calls = {.is_required = true, .field = "tool_choice"};
    return;
  }
  if (choice->value("type", Json()) == "allowed_tools") {
    return read_allowed_tools(fields, *choice, conversation);
  }
  auto name = tool_name(*choice, "tool_choice", fields);
  if (!name) return;
  conversation.calls = {.is_required = true, .only = {*std::move(name)}, .field = "tool_choice"};
}

void read_format(const Json& format, const std::string& field, Fields& fields, chat::Request& out) {
  Fields inner(format, field + ".");
  const auto type = inner.string("type", 64);
  if (inner.error()) return fields.keep(*inner.error());
  if (type == "text") return;
  if (type == "json_object") return set_form(fields, field, json_object_form(), out);
  if (type != "json_schema") {
    return fields.refuse(field + ".type",
                         fmt::format(R"(must be "text", "json_object" or "json_schema", not {})",
                                     type ? literal(shortened(*type, 40)) : "nothing"));
  }
  const Json* nested = inner.object("json_schema");
  if (inner.error()) return fields.keep(*inner.error());
  const bool is_inside = nested || (field == kChatFormat && !inner.has("schema"));
  if (!is_inside) return read_schema(inner, "schema", fields, field, out);
  static const Json kNothing = Json::object();
  Fields holder(nested ? *nested : kNothing, field + ".json_schema.");
  read_schema(holder, "schema", fields, field, out);
}

}  // namespace tandem::protocol::openai
