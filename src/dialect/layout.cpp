#include "dialect/layout.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "dialect/json_text.h"

namespace tandem::dialect {
namespace {

const char* type_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_number()) return "number";
  if (value.is_string()) return "string";
  return value.is_array() ? "array" : "object";
}

std::vector<std::string> keys_of(const Layout& layout, const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  if (layout.sorts_keys) std::ranges::sort(keys);
  return keys;
}

std::string gemma(const Layout& layout, const Json& value) {
  if (value.is_string()) return layout.quote + value.get<std::string>() + layout.quote;
  std::string text;
  if (value.is_array()) {
    for (const Json& inner : value) text += (text.empty() ? "" : ",") + gemma(layout, inner);
    return "[" + text + "]";
  }
  if (!value.is_object()) return spaced_json(value);
  for (const std::string& key : keys_of(layout, value)) {
    text += (text.empty() ? "" : ",") + key + ":" + gemma(layout, value[key]);
  }
  return "{" + text + "}";
}

std::string cdata(const Json& value) {
  if (!value.is_string()) return spaced_json(value);
  auto text = value.get<std::string>();
  const bool is_plain = text.find_first_of("<&\n") == std::string::npos && trimmed(text) == text;
  return is_plain ? text : "<![CDATA[" + text + "]]>";
}

std::string python(const Layout& layout, const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  std::string text;
  if (value.is_array()) {
    for (const Json& inner : value) text += (text.empty() ? "" : ", ") + python(layout, inner);
    return "[" + text + "]";
  }
  if (!value.is_object()) return spaced_json(value);
  for (const std::string& key : keys_of(layout, value)) {
    text += (text.empty() ? "" : ", ") + json_string(key) + ": " + python(layout, value[key]);
  }
  return "{" + text + "}";
}

std::string nested(const Layout& layout, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  const auto element = [&](const std::string& tag, const Json& inner) {
    return layout.quote + "<" + tag + ">" + nested(layout, inner) + layout.quote + "</" + tag + ">";
  };
  std::string text;
  if (value.is_array()) {
    for (const Json& inner : value) text += element("item", inner);
    return text;
  }
  if (!value.is_object()) return spaced_json(value);
  for (const auto& [key, inner] : value.items()) text += element(key, inner);
  return text;
}

std::string parameters(const Layout& layout, const Json& arguments) {
  std::string text;
  for (const std::string& key : keys_of(layout, arguments)) {
    if (!text.empty()) text += layout.between_parameters;
    const Json& value = arguments[key];
    walk(
        layout.parameter, [&](std::string_view piece) { text += piece; },
        [&](std::string_view field) {
          if (field == "key") text += key;
          if (field == "value") text += spell(layout, value);
          if (field == "type") text += type_of(value);
          if (field == "string") text += value.is_string() ? "true" : "false";
        });
  }
  return text;
}

std::string id_of(const Layout& layout, const Call& call, size_t index) {
  if (!call.id.empty()) return call.id;
  std::string id;
  walk(
      layout.id, [&](std::string_view piece) { id += piece; },
      [&](std::string_view field) {
        if (field == "name") id += call.name;
        if (field == "index") id += std::to_string(index);
        if (field == "ordinal") id += std::to_string(index + 1);
      });
  return id;
}

std::string render_call(const Layout& layout, const Call& call, size_t index) {
  std::string text;
  walk(
      layout.call, [&](std::string_view piece) { text += piece; },
      [&](std::string_view field) {
        if (field == "name") text += call.name;
        if (field == "id") text += id_of(layout, call, index);
        if (field == "arguments") text += spell(layout, call.arguments);
        if (field == "parameters") text += parameters(layout, call.arguments);
      });
  return text;
}

}  // namespace

std::string spell(const Layout& layout, const Json& value) {
  switch (layout.spelling) {
    case Spelling::kText:
      return value.is_string() ? value.get<std::string>() : spaced_json(value);
    case Spelling::kCdata:
      return cdata(value);
    case Spelling::kGemma:
      return gemma(layout, value);
    case Spelling::kPython:
      return python(layout, value);
    case Spelling::kNested:
      return nested(layout, value);
    case Spelling::kJson:
      break;
  }
  return spaced_json(value);
}

std::string render(const Layout& layout, std::span<const Call> calls) {
  std::string text = layout.before;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) text += layout.between;
    text += render_call(layout, calls[i], i);
  }
  return text + layout.after;
}

}  // namespace tandem::dialect
