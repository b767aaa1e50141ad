#include "protocol/openai/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "protocol/message_rules.h"
#include "protocol/openai/custom_tools.h"

namespace tandem::protocol::openai {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

/// Text of a list of parts. Parts of other kinds are refused by name, in results of tools replaced:
/// a client cannot take them back.
Result<std::string> join_parts(const Json& parts,
                               const std::string& place,
                               bool is_result,
                               std::vector<chat::Warning>& warnings) {
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", place, i);
    const Json& part = parts[i];
    if (part.is_string()) {
      joined += part.get_ref<const std::string&>();
      continue;
    }
    if (!part.is_object()) return broken_rule(here, "must be an object, not " + excerpt(part));
    const std::string type = string_in(part, "type");
    const bool refusal = type == "refusal";
    if (!refusal && type != "text" && type != "input_text" && type != "output_text") {
      const auto given = part.find("type");
      if (type.empty()) {
        return broken_rule(here + ".type", "must be a string, not " +
                                               (given == part.end() ? "absent" : excerpt(*given)));
      }
      if (is_result) {
        joined += left_out_of_result(type, warnings);
        continue;
      }
      return Error{ErrorCode::kUnsupported,
                   fmt::format("'{}.type' {} is not supported yet: only text is", here,
                               literal(shortened(type, 40))),
                   here + ".type"};
    }
    const char* key = refusal ? "refusal" : "text";
    const auto text = part.find(key);
    if (text == part.end() || !text->is_string()) {
      return broken_rule(fmt::format("{}.{}", here, key), "must be a string");
    }
    joined += text->get_ref<const std::string&>();
  }
  return joined;
}

Json make_call(const Json& given, const std::string& name, Json arguments) {
  Json out;
  if (const auto id = given.find("id"); id != given.end() && id->is_string()) out["id"] = *id;
  out["type"] = "function";
  out["function"] = Json{{"name", name}, {"arguments", std::move(arguments)}};
  return out;
}

/// Of a custom tool: as the model saw it.
Result<Json> read_custom_call(const Json& call, const std::string& place) {
  const auto custom = call.find("custom");
  if (custom == call.end() || !custom->is_object()) {
    return broken_rule(place + ".custom", "must be an object");
  }
  const std::string name = string_in(*custom, "name");
  if (name.empty())
    return broken_rule(place + ".custom.name", "must be a string that is not empty");
  const auto input = custom->find("input");
  if (input == custom->end() || !input->is_string()) {
    return broken_rule(place + ".custom.input", "must be a string");
  }
  return make_call(call, name, custom_arguments(input->get<std::string>()));
}

Result<Json> read_tool_call(const Json& call,
                            const std::string& place,
                            std::vector<chat::Warning>& warnings) {
  if (!call.is_object()) return broken_rule(place, "must be an object, not " + excerpt(call));
  const std::string type = string_in(call, "type");
  if (type == "custom") return read_custom_call(call, place);
  if (!type.empty() && type != "function") {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("'{}.type' {} is not supported yet", place, literal(shortened(type, 40))),
        place + ".type"};
  }
  const auto function = call.find("function");
  if (function == call.end() || !function->is_object()) {
    return broken_rule(place + ".function", "must be an object");
  }
  const std::string name = string_in(*function, "name");
  if (name.empty())
    return broken_rule(place + ".function.name", "must be a string that is not empty");
  return make_call(call, name, read_arguments(*function, warnings));
}

Result<Json> read_tool_calls(const Json& calls,
                             const std::string& place,
                             std::vector<chat::Warning>& warnings) {
  if (!calls.is_array()) return broken_rule(place, "must be an array, not " + excerpt(calls));
  Json out = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    auto call = read_tool_call(calls[i], fmt::format("{}[{}]", place, i), warnings);
    if (!call) return call;
    out.push_back(std::move(*call));
  }
  return out;
}

Result<Json> read_message(const Json& message,
                          const std::string& place,
                          std::vector<chat::Warning>& warnings) {
  if (!message.is_object()) return broken_rule(place, "must be an object, not " + excerpt(message));
  const std::string role = string_in(message, "role");
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    const auto given = message.find("role");
    return broken_rule(place + ".role", "must be system, developer, user, assistant or tool, not " +
                                            (given == message.end() ? "absent" : excerpt(*given)));
  }
  const bool may_be_empty = role == "assistant" || message.contains("content");
  if (!may_be_empty) return broken_rule(place + ".content", "is missing");
  Result<std::string> content = std::string();
  if (const auto given = message.find("content"); given != message.end()) {
    content = read_content(*given, place + ".content", role == "tool", warnings);
  }
  if (!content) return content.error();
  Json out;
  out["role"] = role;
  out["content"] = std::move(*content);
  for (const char* name : {"name", "tool_call_id"}) {
    if (const std::string text = string_in(message, name); !text.empty()) out[name] = text;
  }
  if (role != "assistant") return out;
  std::string thinking = string_in(message, "reasoning_content");
  if (thinking.empty()) thinking = string_in(message, "reasoning");
  if (!thinking.empty()) out["reasoning_content"] = std::move(thinking);
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || calls->is_null() || (calls->is_array() && calls->empty()))
    return out;
  auto parsed = read_tool_calls(*calls, place + ".tool_calls", warnings);
  if (!parsed) return parsed;
  out["tool_calls"] = std::move(*parsed);
  return out;
}

}  // namespace

Result<std::string> read_content(const Json& content,
                                 const std::string& place,
                                 bool is_result,
                                 std::vector<chat::Warning>& warnings) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (content.is_array()) return join_parts(content, place, is_result, warnings);
  return broken_rule(place, "must be a string or an array of parts, not " + excerpt(content));
}

Json read_arguments(const Json& function, std::vector<chat::Warning>& warnings) {
  const auto arguments = function.find("arguments");
  if (arguments == function.end() || arguments->is_null()) return Json::object();
  if (!arguments->is_string()) return Json(*arguments);
  const auto& text = arguments->get_ref<const std::string&>();
  if (is_blank(text)) return Json::object();
  auto parsed = parse_json(text);
  if (parsed) return std::move(*parsed);
  warn(warnings, {.code = "unparsed_arguments",
                  .message = "arguments of an earlier call are no JSON: they are shown as text"});
  return Json{{"unparsed_arguments", text}};
}

Json read_messages(Fields& fields, std::vector<chat::Warning>& warnings) {
  Json out = Json::array();
  const Json* messages = fields.array("messages");
  if (!messages) {
    fields.refuse("messages", "is missing: it must be an array of messages");
    return out;
  }
  if (messages->empty()) fields.refuse("messages", "must hold at least one message");
  for (size_t i = 0; i < messages->size(); ++i) {
    auto message = read_message((*messages)[i], fmt::format("messages[{}]", i), warnings);
    if (!message) {
      fields.keep(message.error());
      return out;
    }
    out.push_back(std::move(*message));
  }
  drop_request_line(out);
  name_tool_results(out);
  return out;
}

}  // namespace tandem::protocol::openai
