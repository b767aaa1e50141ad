#include "protocol/openai/responses_tools.h"

#include <fmt/format.h>

#include <utility>

#include "protocol/message_rules.h"

namespace tandem::protocol::openai {
namespace {

constexpr size_t kMaxNameBytes = 512;
constexpr size_t kMaxTypeBytes = 128;

}  // namespace

std::string ResponsesTools::joined(const std::string& name_space, const std::string& name) {
  return name_space.empty() ? name : name_space + "__" + name;
}

void ResponsesTools::add(Fields& fields,
                         const Json& tools,
                         const std::string& place,
                         std::vector<chat::Warning>& warnings) {
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", place, i);
    if (!tools[i].is_object()) {
      return fields.refuse(here, "must be an object, not " + excerpt(tools[i]));
    }
    Fields tool(tools[i], here + ".");
    if (tool.string("type", kMaxTypeBytes) != "namespace") {
      add_one(fields, tools[i], here, {}, warnings);
      continue;
    }
    const std::string name = tool.string("name", kMaxNameBytes).value_or("");
    const Json* inner = tool.array("tools");
    if (tool.error()) fields.keep(*tool.error());
    for (size_t k = 0; inner && k < inner->size(); ++k) {
      add_one(fields, (*inner)[k], fmt::format("{}.tools[{}]", here, k), name, warnings);
    }
  }
}

void ResponsesTools::add_one(Fields& fields,
                             const Json& tool,
                             const std::string& place,
                             const std::string& name_space,
                             std::vector<chat::Warning>& warnings) {
  if (!tool.is_object()) return fields.refuse(place, "must be an object, not " + excerpt(tool));
  Fields outer(tool, place + ".");
  const std::string type = outer.string("type", kMaxTypeBytes).value_or("");
  if (outer.error()) return fields.keep(*outer.error());
  if (type != "function" && type != "custom") {
    return warn(warnings, {.code = "tool_left_out",
                           .message = fmt::format("tools of type {} are not offered here",
                                                  literal(shortened(type, 40)))});
  }
  // Some clients send tools in the shape of chat completions.
  const Json* nested = outer.object(type);
  if (outer.error()) return fields.keep(*outer.error());
  const std::string inside = nested ? place + "." + type : place;
  Fields inner(nested ? *nested : tool, inside + ".");
  const std::string name = inner.string("name", kMaxNameBytes).value_or("");
  if (name.empty()) inner.refuse("name", "must be a string that is not empty");
  const std::string seen = joined(name_space, name);
  if (type == "custom") {
    Json function = read_custom_tool(inner, seen, inside, text_rules, warnings);
    if (!inner.error()) functions.push_back(std::move(function));
  } else {
    const std::string description = inner.string("description", SIZE_MAX).value_or("");
    const Json* schema = inner.object("parameters");
    functions.push_back(
        make_function(seen, description,
                      schema ? *schema : Json{{"type", "object"}, {"properties", Json::object()}}));
    if (inner.boolean("strict").value_or(false)) functions.back()["function"]["strict"] = true;
  }
  if (inner.error()) return fields.keep(*inner.error());
  if (type == "custom" || !name_space.empty()) {
    names[seen] = {.name = name, .name_space = name_space, .custom = type == "custom"};
  }
}

}  // namespace tandem::protocol::openai
