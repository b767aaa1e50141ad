#include "dialect/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "dialect/json_text.h"

namespace tandem::dialect {
namespace {

constexpr int kDeepestRule = 6;
constexpr const char* kAnyText = "/(?s:.*)/";
constexpr const char* kAnyName = "/[A-Za-z_][A-Za-z0-9_]*/";

/// A member of an object: its name, its schema, and whether it must be there.
struct Member {
  std::string name;
  Schema schema;
  bool is_required = false;
};

std::vector<Member> members_of(Schema schema) {
  std::vector<Member> members;
  const Json* json = schema.target().json();
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

/// The text as a part of a pattern.
std::string in_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}/&~-").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// Appends rules to one grammar; each method gives an expression for what it is asked for.
class GrammarWriter {
 public:
  GrammarWriter(const Dialect& dialect, const GrammarRequest& request)
      : layout_(dialect.layout), request_(request), literals_(dialect.syntax->literals()) {
    if (request.thinking) {
      literals_.push_back(request.thinking->start);
      literals_.push_back(request.thinking->end);
    }
  }

  std::string write_calls(const Dialect& dialect);
  std::optional<std::string> write_open(const Dialect& dialect);
  std::string write_text(const Dialect& dialect, const std::string& expression);

 private:
  std::string_view token_at(std::string_view text) const;
  std::string literal(std::string_view text) const;
  std::string rule(const std::string& body);
  std::string text_before(const std::string& close);
  std::string thinking(const Dialect& dialect, const std::string& space);
  std::string any_call(size_t skipped);
  std::string calls(size_t skipped);
  std::string prose_without(std::vector<std::string> starts, const std::string& another);
  std::string call(const Tool& tool, size_t skipped);
  std::string id(const Tool& tool) const;
  std::string arguments(Schema schema);
  std::string parameters(Schema schema);
  std::string parameter(const std::string& key, const std::string& key_text, Schema schema);
  std::string sequence(const std::vector<std::pair<std::string, bool>>& items,
                       const std::string& separator);
  std::string value_then(Schema schema, const std::string& close, int depth);
  std::string python_value(Schema schema) const;
  std::string gemma_value(Schema schema, int depth);
  std::string gemma_object(Schema schema, int depth);
  std::string nested_value(Schema schema, int depth);
  static std::string enumerated(Schema schema);
  static std::string json(Schema schema);

  const Layout& layout_;
  const GrammarRequest& request_;
  std::vector<std::string> literals_;
  std::string rules_;
  int count_ = 0;
};

/// The longest string at the start of the text that is a token of its own: a literal of the
/// dialect, or a tag. Empty when there is none.
std::string_view GrammarWriter::token_at(std::string_view text) const {
  if (!request_.token) return {};
  std::string_view best;
  for (const std::string& candidate : literals_) {
    const bool fits = candidate.size() > best.size() && text.starts_with(candidate);
    if (fits && request_.token(candidate)) best = text.substr(0, candidate.size());
  }
  if (!best.empty() || text[0] != '<') return best;
  const std::string_view tag = text.substr(0, text.find('>') + 1);
  return !tag.empty() && request_.token(tag) ? tag : best;
}

/// Text, of which what is a token of its own is written as such.
std::string GrammarWriter::literal(std::string_view text) const {
  std::string result;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) result += json_string(std::exchange(plain, {})) + " ";
  };
  while (!text.empty()) {
    const std::string_view token = token_at(text);
    if (token.empty()) {
      plain += text[0];
      text.remove_prefix(1);
      continue;
    }
    flush();
    result += fmt::format("<[{}]> ", *request_.token(token));
    text.remove_prefix(token.size());
  }
  flush();
  if (!result.empty()) result.pop_back();
  return result;
}

std::string GrammarWriter::rule(const std::string& body) {
  const std::string name = fmt::format("r{}", count_++);
  rules_ += name + ": " + body + "\n";
  return name;
}

/// Any text up to the string and past it.
std::string GrammarWriter::text_before(const std::string& close) {
  const std::string spelled = literal(close);
  if (spelled.starts_with('<')) return rule(kAnyText) + " " + spelled;
  const std::string first = spelled.substr(0, spelled.find(" <["));
  const std::string name = fmt::format("r{}", count_++);
  rules_ += fmt::format("{}[suffix={}]: {}\n", name, first, kAnyText);
  return name + spelled.substr(first.size());
}

std::string GrammarWriter::json(Schema schema) {
  if (schema.json() == nullptr) return json_expression(Json::object());
  return json_expression(standing_alone(*schema.json(), schema.document()));
}

/// A rule for a call of any tool, without its first bytes, which are the same for all.
std::string GrammarWriter::any_call(size_t skipped) {
  std::string choices;
  for (const Tool& tool : request_.tools.list()) {
    const auto& only = request_.only;
    if (!only.empty() && std::ranges::find(only, tool.name) == only.end()) continue;
    choices += (choices.empty() ? "" : " | ") + rule(call(tool, skipped));
  }
  TANDEM_CHECK(!choices.empty(), "a grammar of calls needs a tool");
  return rule(choices);
}

/// All calls, without their first bytes.
std::string GrammarWriter::calls(size_t skipped) {
  const std::string_view before = layout_.before;
  const size_t in_before = std::min(skipped, before.size());
  const std::string first = any_call(skipped - in_before);
  std::string all = literal(before.substr(in_before)) + " " + first;
  if (request_.parallel) {
    const std::string next = skipped > in_before ? any_call(0) : first;
    all += " (" + literal(layout_.between) + " " + next + ")*";
  }
  return all + " " + literal(layout_.after);
}

std::string GrammarWriter::write_calls(const Dialect& dialect) {
  const std::string start = thinking(dialect, "/\\s{0,8}/") + " " + calls(0);
  return "start: " + start + "\n" + rules_;
}

std::string GrammarWriter::write_text(const Dialect& dialect, const std::string& expression) {
  std::string text = expression;
  if (dialect.syntax->owns_answer()) {
    text = literal("<|channel|>final<|message|>") + " " + text;
  }
  const std::string either =
      request_.tools.empty() ? rule(text) : "(" + rule(text) + " | " + rule(calls(0)) + ")";
  // Space in front of JSON says nothing; in front of other text it would be part of it, but for
  // what always stands there.
  const std::string space =
      expression.starts_with("%json") ? "/\\n{0,2}/" : literal(request_.behind_thinking);
  const std::string start = thinking(dialect, space) + " " + either;
  return "start: " + start + "\n" + rules_;
}

/// Text in which none of these begins.
std::string GrammarWriter::prose_without(std::vector<std::string> starts,
                                         const std::string& another) {
  if (!another.empty()) starts.push_back(another);
  std::string any;
  for (const std::string& start : starts) {
    if (!token_at(start).empty()) continue;  // text never has tokens of their own
    any += (any.empty() ? "" : "|") + in_pattern(start);
  }
  const std::string name = fmt::format("PROSE{}", count_++);
  const std::string without =
      any.empty() ? std::string() : fmt::format(" & ~/(?s:.*)({})(?s:.*)/", any);
  rules_ += fmt::format("{}: {}{}\n", name, kAnyText, without);
  return name;
}

std::optional<std::string> GrammarWriter::write_open(const Dialect& dialect) {
  const Syntax& syntax = *dialect.syntax;
  if (syntax.owns_answer() || syntax.bare_start() != 0) return std::nullopt;
  const std::string begin = layout_.before + layout_.call.substr(0, layout_.call.find('$'));
  std::string trigger;
  std::vector<std::string> others;
  for (const std::string& start : syntax.starts()) {
    if (!begin.starts_with(start)) {
      others.push_back(start);
    } else if (start.size() > trigger.size()) {
      trigger = start;
    }
  }
  if (trigger.empty()) return std::nullopt;
  const bool is_token = !token_at(trigger).empty();
  const std::string bound = rule(calls(trigger.size()));
  const std::string free = prose_without(others, is_token ? std::string() : trigger);
  // Text that ends where a marker of letters begins can be told only as a whole with it.
  if (!is_token && !others.empty()) return std::nullopt;
  const std::string lead = is_token ? free + " " + literal(trigger) : text_before(trigger);
  const std::string start = thinking(dialect, {}) + " (" + lead + " " + bound + " | " + free + ")";
  return "start: " + start + "\n" + rules_;
}

/// `space` follows it.
std::string GrammarWriter::thinking(const Dialect& dialect, const std::string& space) {
  if (!request_.may_think) return {};
  if (dialect.syntax->owns_answer()) {
    return "(" + literal("<|channel|>analysis<|message|>") + " " + text_before("<|end|>") + " " +
           literal("<|start|>") + " \"assistant\")?";
  }
  if (!request_.thinking) return {};
  const std::string rest = text_before(request_.thinking->end) + " " + space;
  if (request_.in_thinking) return rest;
  return "(" + literal(request_.thinking->start) + " " + rest + ")?";
}

std::string GrammarWriter::call(const Tool& tool, size_t skipped) {
  const Schema schema = tool.parameters.is_object() ? Schema(tool.parameters) : Schema();
  std::string result;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) result += literal(std::exchange(plain, {})) + " ";
  };
  std::string_view pattern = layout_.call;
  if (pattern.starts_with(layout_.in_prompt)) pattern.remove_prefix(layout_.in_prompt.size());
  pattern.remove_prefix(skipped);
  if (pattern.ends_with(layout_.at_end)) pattern.remove_suffix(layout_.at_end.size());
  walk(
      pattern, [&](std::string_view piece) { plain += piece; },
      [&](std::string_view field) {
        if (field == "name") {
          plain += tool.name;
          return;
        }
        flush();
        if (field == "id") result += id(tool) + " ";
        if (field == "arguments") result += arguments(schema) + " ";
        if (field == "parameters") result += parameters(schema) + " ";
      });
  flush();
  return result;
}

std::string GrammarWriter::id(const Tool& tool) const {
  const std::string pattern = "/" + layout_.id_pattern + "/";
  const size_t name = layout_.id.find("$name");
  if (name == std::string::npos) return pattern;
  const size_t index = layout_.id.find('$', name + 1);
  const std::string between = layout_.id.substr(name + 5, index - name - 5);
  return literal(layout_.id.substr(0, name) + tool.name + between) + " " + pattern;
}

std::string GrammarWriter::arguments(Schema schema) {
  if (layout_.spelling == Spelling::kGemma) return gemma_object(schema, 0);
  if (schema.json() == nullptr) return json_expression(Json{{"type", "object"}});
  return json(schema);
}

/// Items with a separator between them; those that are not required may be left out.
std::string GrammarWriter::sequence(const std::vector<std::pair<std::string, bool>>& items,
                                    const std::string& separator) {
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
  std::vector<std::pair<std::string, bool>> items;
  for (const Member& member : members_of(schema)) {
    items.emplace_back(rule(parameter(member.name, {}, member.schema)), member.is_required);
  }
  if (!items.empty()) return sequence(items, layout_.between_parameters);
  const bool is_closed = schema.json() != nullptr && schema.json()->is_object() &&
                         schema.json()->value("additionalProperties", Json()) == false;
  if (is_closed || layout_.spelling == Spelling::kNested) return {};
  const std::string any = rule(parameter({}, kAnyName, {}));
  const std::string between = literal(layout_.between_parameters);
  return "(" + any + " (" + between + " " + any + ")*)?";
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

/// A value and what closes it.
std::string GrammarWriter::value_then(Schema schema, const std::string& close, int depth) {
  if (layout_.spelling == Spelling::kPython) return python_value(schema) + " " + literal(close);
  const Kinds kinds = schema.kinds();
  const bool is_text = kinds == 0 || (kinds & kString) != 0 || depth > kDeepestRule;
  if (layout_.spelling == Spelling::kNested && !is_text) {
    return nested_value(schema, depth) + " " + literal(close);
  }
  if (!is_text) return json(schema) + " " + literal(close);
  const std::string words = enumerated(schema);
  if (!words.empty()) return words + " " + literal(close);
  if (layout_.spelling == Spelling::kCdata) return "/[^<&\\n]*/ " + literal(close);
  return text_before(close);
}

/// The strings that the schema lists; empty when it lists none.
std::string GrammarWriter::enumerated(Schema schema) {
  const Json* json = schema.target().json();
  if (schema.kinds() != kString || json == nullptr || !json->is_object() || !json->contains("enum"))
    return {};
  std::string any;
  for (const Json& value : (*json)["enum"]) {
    if (!value.is_string()) continue;
    any += (any.empty() ? "" : " | ") + json_string(value.get<std::string>());
  }
  return any.empty() ? any : "(" + any + ")";
}

std::string GrammarWriter::python_value(Schema schema) const {
  const Kinds kinds = schema.kinds();
  if (kinds == kBoolean) return "(\"True\" | \"False\")";
  if (kinds == kNull) return "\"None\"";
  return json(schema);
}

std::string GrammarWriter::gemma_value(Schema schema, int depth) {
  const Kinds kinds = schema.kinds();
  if (kinds == 0 || (kinds & kString) != 0 || depth > kDeepestRule) {
    const std::string words = enumerated(schema);
    const std::string rest =
        words.empty() ? text_before(layout_.quote) : words + " " + literal(layout_.quote);
    return literal(layout_.quote) + " " + rest;
  }
  if ((kinds & kObject) != 0) return gemma_object(schema, depth + 1);
  if ((kinds & kArray) != 0) {
    const std::string item = rule(gemma_value(schema.items(), depth + 1));
    return "\"[\" (" + item + " (\",\" " + item + ")*)? \"]\"";
  }
  return json(schema);
}

std::string GrammarWriter::gemma_object(Schema schema, int depth) {
  std::vector<std::pair<std::string, bool>> items;
  for (const Member& member : members_of(schema)) {
    items.emplace_back(
        rule(json_string(member.name + ":") + " " + gemma_value(member.schema, depth)),
        member.is_required);
  }
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
  if ((kinds & kArray) != 0) return "(" + rule(element("item", schema.items())) + ")*";
  if ((kinds & kObject) == 0) return json(schema);
  std::vector<std::pair<std::string, bool>> items;
  for (const Member& member : members_of(schema)) {
    items.emplace_back(rule(element(member.name, member.schema)), member.is_required);
  }
  return sequence(items, {});
}

}  // namespace

std::string call_grammar(const Dialect& dialect, const GrammarRequest& request) {
  return GrammarWriter(dialect, request).write_calls(dialect);
}

std::optional<std::string> open_grammar(const Dialect& dialect, const GrammarRequest& request) {
  return GrammarWriter(dialect, request).write_open(dialect);
}

std::string text_grammar(const Dialect& dialect,
                         const GrammarRequest& request,
                         const std::string& expression) {
  return GrammarWriter(dialect, request).write_text(dialect, expression);
}

}  // namespace tandem::dialect
