// What stands in a call: values in a dialect's spelling, bound by a tool's schema.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "dialect/grammar_writer.h"
#include "dialect/json_text.h"

namespace tandem::dialect {
namespace {

constexpr int kDeepestRule = 6;
constexpr size_t kMostSkeleton = 1500;    // schemas of one
constexpr size_t kMostOfRules = 1 << 20;  // bytes: a source of more is not taken
constexpr const char* kAnyName = "/[A-Za-z_][A-Za-z0-9_]*/";

/// A member of an object: its name, its schema, and whether it must be there.
struct Member {
  std::string name;
  Schema schema;
  bool is_required = false;
};

std::vector<Member> members_of(Schema reference) {
  const Schema schema = reference.target();
  std::vector<Member> members;
  const Json* json = schema.json();
  if (json == nullptr || !json->is_object() || !json->contains("properties")) return members;
  const Json& properties = (*json)["properties"];
  if (!properties.is_object()) return members;
  const Json required = json->value("required", Json::array());
  for (const auto& [name, value] : properties.items()) {
    const bool is_required =
        required.is_array() && std::ranges::find(required, Json(name)) != required.end();
    members.push_back({.name = name, .schema = schema.property(name), .is_required = is_required});
  }
  return members;
}

std::string json(Schema schema) {
  if (schema.json() == nullptr) return json_expression(Json::object());
  return json_expression(standing_alone(*schema.json(), schema.document()));
}

using Words = std::optional<std::vector<std::string>>;  // nothing: any

void keep_common(Words& words, const Words& others) {
  if (!others) return;
  if (!words) {
    words = others;
    return;
  }
  std::erase_if(*words, [&](const std::string& word) {
    return std::ranges::find(*others, word) == others->end();
  });
}

Words strings_among(const Json& values) {
  std::vector<std::string> out;
  for (const Json& value : values) {
    if (value.is_string()) out.push_back(value.get<std::string>());
  }
  return out;
}

/// The strings that fit a schema by its `const`, `enum`, and those of the schemas that it is made
/// of. Where text stands without quotes it is always a string: other values that the schema lists
/// beside strings cannot be written there.
Words words_of(Schema reference, int depth = 0) {
  const Schema schema = reference.target();
  if (schema.json() == nullptr || !schema.json()->is_object() || depth > kDeepestRule) return {};
  const Json& json = *schema.json();
  Words words;
  if (json.contains("type") && (schema.own_type() & kString) == 0) {
    words = std::vector<std::string>();
  }
  if (json.contains("const")) keep_common(words, strings_among(Json::array({json["const"]})));
  if (json.contains("enum")) keep_common(words, strings_among(json["enum"]));
  for (const char* keyword : {"anyOf", "oneOf"}) {
    Words all = std::vector<std::string>();
    for (const Schema& part : schema.parts_of(keyword)) {
      const Words some = words_of(part, depth + 1);
      if (!some) {
        all.reset();
        break;
      }
      all->insert(all->end(), some->begin(), some->end());
    }
    if (json.contains(keyword)) keep_common(words, all);
  }
  for (const Schema& part : schema.parts_of("allOf")) keep_common(words, words_of(part, depth + 1));
  return words;
}

/// One of the strings that the schema lists; empty when it lists none.
std::string enumerated(Schema schema) {
  const Words words = words_of(schema);
  if (!words || words->empty()) return {};
  std::string any;
  for (const std::string& word : *words) any += (any.empty() ? "" : " | ") + json_string(word);
  return "(" + any + ")";
}

std::string python_value(Schema schema) {
  const Kinds kinds = schema.kinds();
  if (kinds == kBoolean) return "(\"True\" | \"False\")";
  if (kinds == kNull) return "\"None\"";
  if (kinds == 0) return "(" + json(schema) + " | \"True\" | \"False\" | \"None\")";
  return json(schema);
}

/// Whether each group of a pattern ends in it, and none before it begins.
bool is_balanced(std::string_view pattern) {
  int depth = 0;
  bool is_class = false;
  for (size_t i = 0; i < pattern.size() && depth >= 0; ++i) {
    const char c = pattern[i];
    if (c == '\\') ++i;
    if (c == '[') is_class = true;
    if (c == ']') is_class = false;
    if (!is_class && c == '(') ++depth;
    if (!is_class && c == ')') --depth;
  }
  return depth == 0;
}

/// The expression of strings that the schema allows: those that its pattern matches as a whole, or
/// any. Patterns that match a part, and are not "^(?:…)$", say nothing here.
std::string string_body(Schema schema) {
  const Json* json = schema.target().json();
  if (json == nullptr || !json->is_object() || !json->contains("pattern")) return kAnyText;
  const Json& pattern = (*json)["pattern"];
  if (schema.kinds() != kString || !pattern.is_string()) return kAnyText;
  const std::string_view whole = pattern.get_ref<const std::string&>();
  constexpr std::string_view kOpen = "^(?:";
  constexpr std::string_view kClose = ")$";
  if (!whole.starts_with(kOpen) || !whole.ends_with(kClose)) return kAnyText;
  const std::string_view inner =
      whole.substr(kOpen.size(), whole.size() - kOpen.size() - kClose.size());
  return is_balanced(inner) ? regex_expression(inner) : kAnyText;
}

bool is_closed(Schema reference) {
  const Schema schema = reference.target();
  return schema.json() != nullptr && schema.json()->is_object() &&
         schema.json()->value("additionalProperties", Json()) == false;
}

uint64_t count_in(Schema schema, const char* keyword, uint64_t missing) {
  const Json* json = schema.target().json();
  if (json == nullptr || !json->is_object() || !json->contains(keyword)) return missing;
  const Json& count = (*json)[keyword];
  return count.is_number_unsigned() || count.is_number_integer() ? count.get<uint64_t>() : missing;
}

/// So many elements of an array as its schema says: the first one, and the others.
std::string some_of(Schema array, const std::string& first, const std::string& other) {
  const uint64_t least = count_in(array, "minItems", 0);
  const uint64_t most = count_in(array, "maxItems", UINT64_MAX);
  if (most == 0) return "\"\"";
  const std::string upper = most == UINT64_MAX ? "" : std::to_string(most - 1);
  const uint64_t lower = least > 0 ? least - 1 : 0;
  const std::string all = fmt::format("{} ({}){{{},{}}}", first, other, lower, upper);
  return least == 0 ? "(" + all + ")?" : all;
}

/// The types as a schema lists them.
Json type_list(Kinds kinds) {
  Json list = Json::array();
  for (const Kinds kind : {kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject}) {
    if ((kinds & kind) == 0) continue;
    list.push_back(kind == kInteger ? "integer" : type_name(kind));
  }
  return list;
}

/// Names and types of a schema, which say how values are written, without what binds them.
Json skeleton(Schema schema, int depth, size_t& left) {
  Json out = Json::object();
  if (left == 0) return out;
  --left;
  const Kinds kinds = schema.kinds();
  if (kinds != 0) out["type"] = type_list(kinds);
  if (depth > kDeepestRule) return out;
  for (const Member& member : members_of(schema)) {
    out["properties"][member.name] = skeleton(member.schema, depth + 1, left);
  }
  if ((kinds & kArray) != 0) {
    if (const Schema items = schema.items(); items.json() != nullptr) {
      out["items"] = skeleton(items, depth + 1, left);
    }
  }
  return out;
}

}  // namespace

/// What binds the arguments. Of a loose tool nothing does, but where the spelling of a value
/// depends on its type, or on what its members are called, these are needed to write any.
Schema GrammarWriter::schema_of(const Tool& tool) {
  if (!tool.parameters.is_object()) return {};
  if (!tool.loose) return Schema(tool.parameters);
  const bool has_types = layout_.parameter.find("$type") != std::string::npos ||
                         layout_.parameter.find("$string") != std::string::npos;
  const bool needs_types =
      has_types || layout_.spelling == Spelling::kGemma || layout_.spelling == Spelling::kNested;
  if (!needs_types) return {};
  size_t left = kMostSkeleton;
  skeletons_.push_back(skeleton(Schema(tool.parameters), 0, left));
  return Schema(skeletons_.back());
}

/// Schemas that refer to themselves are written out to a depth, which may be without end: what
/// comes behind so much is never read.
bool GrammarWriter::is_full() const { return rules_.size() > kMostOfRules; }

std::string GrammarWriter::arguments(Schema schema) {
  if (layout_.spelling == Spelling::kGemma) return gemma_object(schema, 0);
  if (schema.json() == nullptr) return json_expression(Json{{"type", "object"}});
  return json(schema);
}

/// Items with a separator between them; those that are not required may be left out.
std::string GrammarWriter::sequence(const Items& items, const std::string& separator) {
  const std::string between = separator.empty() ? "" : literal(separator) + " ";
  std::string required;
  std::string optional;
  std::string any;
  for (const auto& [item, is_required] : items) {
    any += (any.empty() ? "" : " | ") + item;
    if (is_required) required += (required.empty() ? "" : between) + item + " ";
    if (!is_required) optional += "(" + between + item + ")? ";
  }
  if (any.empty()) return {};
  if (!required.empty() || between.empty()) return required + optional;
  const std::string one = rule(any);
  return "(" + one + " (" + between + one + ")*)?";
}

std::string GrammarWriter::parameters(Schema schema) {
  Items items;
  for (const Member& member : members_of(schema)) {
    const std::string one = member.schema.kinds() == 0
                                ? any_parameter(member.name, {})
                                : rule(parameter(member.name, {}, member.schema));
    items.emplace_back(one, member.is_required);
  }
  if (!items.empty()) return sequence(items, layout_.between_parameters);
  if (is_closed(schema) || layout_.spelling == Spelling::kNested) return {};
  const std::string any = any_parameter({}, kAnyName);
  const std::string between = literal(layout_.between_parameters);
  return "(" + any + " (" + between + " " + any + ")*)?";
}

/// A rule for a parameter of any type; where the layout tells the type, of each of them.
std::string GrammarWriter::any_parameter(const std::string& key, const std::string& key_text) {
  const bool tells_string = layout_.parameter.find("$string") != std::string::npos;
  if (!tells_type() && !tells_string) return rule(parameter(key, key_text, {}));
  std::string choices;
  for (const char* type : {"string", "number", "boolean", "object", "array", "null"}) {
    skeletons_.push_back({{"type", type}});
    choices +=
        (choices.empty() ? "" : " | ") + rule(parameter(key, key_text, Schema(skeletons_.back())));
  }
  return rule(choices);
}

/// `key_text`: an expression for the key, where it is not known.
std::string GrammarWriter::parameter(const std::string& key,
                                     const std::string& key_text,
                                     Schema schema) {
  const size_t value_at = layout_.parameter.find("$value");
  std::string result;
  std::string plain;
  const auto add = [&](std::string_view field) {
    const bool is_string = schema.kinds() == 0 || (schema.kinds() & kString) != 0;
    if (field == "key" && !key_text.empty()) {
      if (!plain.empty()) result += literal(std::exchange(plain, {})) + " ";
      result += key_text + " ";
    }
    if (field == "key") plain += key;
    if (field == "string") plain += is_string ? "true" : "false";
    if (field == "type") plain += is_string ? "string" : type_name(schema.kinds());
  };
  walk(
      std::string_view(layout_.parameter).substr(0, value_at),
      [&](std::string_view piece) { plain += piece; }, add);
  if (!plain.empty()) result += literal(std::exchange(plain, {})) + " ";
  walk(
      std::string_view(layout_.parameter).substr(value_at + 6),
      [&](std::string_view piece) { plain += piece; },
      [&](std::string_view field) {
        if (field == "key") plain += key;
      });
  return result + value_then(schema, plain, 0);
}

bool GrammarWriter::tells_type() const {
  return layout_.parameter.find("$type") != std::string::npos;
}

/// JSON that fits the schema; of one type where the layout has told which.
std::string GrammarWriter::told_value(Schema schema) const {
  const std::string type = type_name(schema.kinds());
  if (!tells_type() || type_list(schema.kinds()).size() == 1 || schema.json() == nullptr) {
    return json(schema);
  }
  const Json whole = standing_alone(*schema.json(), schema.document());
  Json both = {{"allOf", {whole, {{"type", type}}}}};
  if (whole.contains("$defs")) {
    both["$defs"] = whole["$defs"];
    both["allOf"][0].erase("$defs");
  }
  return json_expression(both);
}

/// A value and what closes it.
std::string GrammarWriter::value_then(Schema schema, const std::string& close, int depth) {
  if (layout_.spelling == Spelling::kPython) return python_value(schema) + " " + literal(close);
  const Kinds kinds = schema.kinds();
  const bool is_text = kinds == 0 || (kinds & kString) != 0 || depth > kDeepestRule || is_full();
  if (layout_.spelling == Spelling::kNested && !is_text) {
    return nested_value(schema, depth) + " " + literal(close);
  }
  if (!is_text) return told_value(schema) + " " + literal(close);
  const std::string words = enumerated(schema);
  if (!words.empty()) return words + " " + literal(close);
  return string_then(schema, close);
}

/// A string as text.
std::string GrammarWriter::string_then(Schema schema, const std::string& close) {
  const std::string body = string_body(schema);
  if (layout_.spelling != Spelling::kCdata) return text_before(close, body);
  if (body == kAnyText) return "/[^<&\\n]*/ " + literal(close);
  return literal("<![CDATA[") + " " + text_before("]]>", body) + " " + literal(close);
}

std::string GrammarWriter::gemma_any() {
  if (!any_value_.empty()) return any_value_;
  any_value_ = fmt::format("any{}", count_++);
  const std::string pair = rule(std::string(kAnyName) + " \":\" " + any_value_);
  const std::string text = rule(literal(layout_.quote) + " " + text_before(layout_.quote));
  const std::string word = json_expression({{"type", {"number", "boolean", "null"}}});
  rules_ += fmt::format(
      "{0}: {1} | {2} | \"{{\" ({3} (\",\" {3})*)? \"}}\" | \"[\" ({0} (\",\" {0})*)? \"]\"\n",
      any_value_, text, word, pair);
  return any_value_;
}

std::string GrammarWriter::gemma_value(Schema schema, int depth) {
  const Kinds kinds = schema.kinds();
  if (kinds == 0 || depth > kDeepestRule || is_full()) return gemma_any();
  if ((kinds & kString) != 0) {
    const std::string words = enumerated(schema);
    const std::string rest = words.empty() ? text_before(layout_.quote, string_body(schema))
                                           : words + " " + literal(layout_.quote);
    return literal(layout_.quote) + " " + rest;
  }
  if ((kinds & kObject) != 0) return gemma_object(schema, depth + 1);
  if ((kinds & kArray) != 0) {
    const std::string item = rule(gemma_value(schema.items(), depth + 1));
    return "\"[\" " + some_of(schema, item, "\",\" " + item) + " \"]\"";
  }
  return json(schema);
}

std::string GrammarWriter::gemma_object(Schema schema, int depth) {
  Items items;
  for (const Member& member : members_of(schema)) {
    items.emplace_back(
        rule(json_string(member.name + ":") + " " + gemma_value(member.schema, depth)),
        member.is_required);
  }
  if (items.empty() && is_closed(schema)) return "\"{}\"";
  if (items.empty()) {
    const std::string any = rule(std::string(kAnyName) + " \":\" " + gemma_value({}, depth));
    return "\"{\" (" + any + " (\",\" " + any + ")*)? \"}\"";
  }
  return "\"{\" " + sequence(items, ",") + " \"}\"";
}

/// Elements, or text that is no string.
std::string GrammarWriter::nested_value(Schema schema, int depth) {
  const Kinds kinds = schema.kinds();
  const auto element = [&](const std::string& tag, Schema inner) {
    return literal(layout_.quote + "<" + tag + ">") + " " +
           value_then(inner, layout_.quote + "</" + tag + ">", depth + 1);
  };
  if ((kinds & kArray) != 0) {
    const std::string item = rule(element("item", schema.items()));
    return some_of(schema, item, item);
  }
  if ((kinds & kObject) == 0) return json(schema);
  Items items;
  for (const Member& member : members_of(schema)) {
    items.emplace_back(rule(element(member.name, member.schema)), member.is_required);
  }
  return sequence(items, {});
}

}  // namespace tandem::dialect
