#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "dialect/grammar_writer.h"
#include "dialect/json_text.h"

namespace tandem::dialect {
namespace {

/// The schema of a call that is JSON as a whole, as the layout writes it.
Json call_schema(std::string layout, const std::string& name, const Json& parameters) {
  constexpr std::string_view kArguments = "$arguments";
  if (const size_t at = layout.find(kArguments); at != std::string::npos) {
    layout.replace(at, kArguments.size(), "null");
  }
  const Json members = Json::parse(layout, nullptr, false);
  TANDEM_CHECK(members.is_object(), "calls of this layout are no JSON");
  Json properties = Json::object();
  Json required = Json::array();
  for (const auto& [key, value] : members.items()) {
    properties[key] = value.is_null() ? parameters : Json{{"const", name}};
    required.push_back(key);
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

}  // namespace

std::string in_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}/&~-").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

GrammarWriter::GrammarWriter(const Dialect& dialect, const GrammarRequest& request)
    : dialect_(dialect),
      layout_(dialect.layout),
      request_(request),
      literals_(dialect.syntax->literals()) {
  if (request.thinking) {
    literals_.push_back(request.thinking->start);
    literals_.push_back(request.thinking->end);
  }
}

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

/// Text that the expression allows, up to the string and past it. `without` is an expression of
/// what it must not be.
std::string GrammarWriter::text_before(const std::string& close,
                                       const std::string& body,
                                       const std::string& without) {
  const bool has_parts = body.find_first_of("&|") != std::string::npos;
  std::string allowed = has_parts ? "(" + body + ")" : body;
  if (!without.empty()) allowed += " & ~" + without;
  const std::string spelled = literal(close);
  const std::string name = fmt::format("R{}", count_++);
  if (spelled.starts_with('<')) {
    rules_ += fmt::format("{}: {}\n", name, allowed);
    return name + " " + spelled;
  }
  const std::string first = spelled.substr(0, spelled.find(" <["));
  std::string inside = allowed;
  if (body != kAnyText) {  // the first one closes it, also where the body could go on
    inside += " & ~/(?s:.*)" + in_pattern(Json::parse(first).get<std::string>()) + "(?s:.*)/";
  }
  const std::string rule = fmt::format("r{}", count_++);
  rules_ += fmt::format("{}: {}\n{}[suffix={}]: {}\n", name, inside, rule, first, name);
  return rule + spelled.substr(first.size());
}

bool GrammarWriter::is_shown(const Tool& tool) const {
  const auto& only = request_.only;
  return only.empty() || std::ranges::find(only, tool.name) != only.end();
}

/// A rule for a call of any tool, without its first bytes, which are the same for all.
std::string GrammarWriter::any_call(size_t skipped) {
  std::string_view pattern = layout_.call;
  if (pattern.starts_with(layout_.in_prompt)) pattern.remove_prefix(layout_.in_prompt.size());
  pattern.remove_prefix(skipped);
  if (pattern.ends_with(layout_.at_end)) pattern.remove_suffix(layout_.at_end.size());
  std::string choices;
  for (const Tool& tool : request_.tools.list()) {
    if (!is_shown(tool)) continue;
    choices += (choices.empty() ? "" : " | ") + rule(call(tool, pattern));
    if (skipped == 0 && !layout_.call_too.empty()) {
      choices += " | " + rule(call(tool, layout_.call_too));
    }
  }
  TANDEM_CHECK(!choices.empty(), "a grammar of calls needs a tool");
  return rule(choices);
}

/// All calls, without their first bytes. Where calls are messages the first ends the answer.
std::string GrammarWriter::calls(size_t skipped) {
  const std::string_view before = layout_.before;
  const size_t in_before = std::min(skipped, before.size());
  const std::string first = any_call(skipped - in_before);
  std::string all = literal(before.substr(in_before)) + " " + first;
  if (request_.parallel && !dialect_.syntax->owns_answer()) {
    const std::string next = skipped > in_before ? any_call(0) : first;
    all += " (" + literal(layout_.between) + " " + next + ")*";
  }
  return all + " " + literal(layout_.after);
}

Result<std::string> GrammarWriter::whole(const std::string& start) {
  if (!unbound_.empty()) return Error{ErrorCode::kInvalid, unbound_, "grammar"};
  return "start: " + start + "\n" + rules_;
}

Result<std::string> GrammarWriter::write_calls() {
  const std::string lead = thinking("/\\s{0,8}/");
  return whole(lead + " " + calls(0));
}

Result<std::string> GrammarWriter::write_text(const TextForm& form) {
  // Space in front of JSON says nothing; in front of other text it would be part of it, but for
  // what always stands there.
  const std::string space =
      form.schema.is_null() ? literal(request_.behind_thinking) : std::string("/\\n{0,2}/");
  const std::string lead = thinking(space);
  return whole(lead + " (" + text_or_call(form) + ")");
}

/// Where calls are JSON without a marker, they and JSON of a form are one schema: as two
/// expressions they would begin alike and be told apart by their first bytes.
std::string GrammarWriter::text_or_call(const TextForm& form) {
  std::string text = form.expression;
  if (dialect_.syntax->owns_answer()) text = literal("<|channel|>final<|message|>") + " " + text;
  if (request_.tools.empty()) return rule(text);
  if (dialect_.syntax->bare_start() == 0 || form.schema.is_null()) {
    return rule(text) + " | " + rule(calls(0));
  }
  Json either{{"anyOf", Json::array({{{"$ref", "#/$defs/form"}}})},
              {"$defs", {{"form", form.schema}}}};
  move_references(either["$defs"]["form"], "#/$defs/form");
  for (const Tool& tool : request_.tools.list()) {
    if (!is_shown(tool)) continue;
    const std::string name = fmt::format("call{}", either["anyOf"].size());
    const bool is_bound = tool.parameters.is_object() && !tool.loose;
    Json parameters = is_bound ? tool.parameters : Json{{"type", "object"}};
    move_references(parameters, fmt::format("#/$defs/{}", name));
    either["anyOf"].push_back(call_schema(layout_.call, tool.name, {{"$ref", "#/$defs/" + name}}));
    either["$defs"][name] = std::move(parameters);
  }
  const std::string one = rule(json_expression(either));
  if (layout_.mark_after_text.empty()) return one;
  return one + " | " + literal(layout_.mark_after_text) + " " + rule(calls(0));
}

/// The expression of text in which one of these begins; empty where they are tokens of their own,
/// which no text has.
std::string GrammarWriter::without_starts(const std::vector<std::string>& starts) const {
  std::string any;
  for (const std::string& start : starts) {
    if (!token_at(start).empty()) continue;
    any += (any.empty() ? "" : "|") + in_pattern(start);
  }
  return any.empty() ? any : fmt::format("/(?s:.*)({})(?s:.*)/", any);
}

Result<std::string> GrammarWriter::write_open() {
  std::string open;
  if (dialect_.syntax->owns_answer()) {
    open = open_messages();
  } else if (dialect_.syntax->bare_start() != 0) {
    open = open_from_start();
  } else {
    open = open_behind_marker();
  }
  return whole(open);
}

/// Prose up to the marker of a call, and calls; or prose without one. Other markers that would be
/// read as calls are not written.
std::string GrammarWriter::open_behind_marker() {
  const std::string begin = layout_.before + layout_.call.substr(0, layout_.call.find('$'));
  const std::vector<std::string> starts = dialect_.syntax->starts();
  std::string trigger;
  for (const std::string& start : starts) {
    if (begin.starts_with(start) && start.size() > trigger.size()) trigger = start;
  }
  TANDEM_CHECK(!trigger.empty(), "calls of this layout begin with no marker");
  std::vector<std::string> others;
  for (const std::string& start : starts) {
    if (!begin.starts_with(start)) others.push_back(start);
  }
  const std::string free = fmt::format("PROSE{}", count_++);
  const std::string unwritten = without_starts(starts);
  rules_ += free + ": " + kAnyText + (unwritten.empty() ? "" : " & ~" + unwritten) + "\n";
  const bool is_token = !token_at(trigger).empty();
  const std::string lead = is_token ? free + " " + literal(trigger)
                                    : text_before(trigger, kAnyText, without_starts(others));
  return thinking({}) + " (" + lead + " " + rule(calls(trigger.size())) + " | " + free + ")";
}

/// A call that may have white space in front of it, which with its first words is one pattern: by
/// itself it would be taken for the beginning of prose.
std::string GrammarWriter::spaced_call(const Tool& tool) {
  const std::string plain = call(tool, layout_.call);
  TANDEM_CHECK(plain.starts_with('"'), "calls of this layout begin with no words");
  size_t end = 1;
  while (plain[end] != '"') end += plain[end] == '\\' ? 2 : 1;
  const std::string words = Json::parse(plain.substr(0, end + 1)).get<std::string>();
  return "/\\s{0,8}" + in_pattern(words) + "/" + plain.substr(end + 1);
}

/// A call begins the answer without a marker, or stands behind text and one. Text that begins as
/// JSON does and names a tool where a call would is none that is free.
std::string GrammarWriter::open_from_start() {
  std::string names;
  for (const Tool& tool : request_.tools.list()) {
    names += (names.empty() ? "" : "|") + in_pattern(tool.name);
  }
  std::string keys;
  for (const std::string& key : dialect_.syntax->bare_name_keys()) {
    keys += (keys.empty() ? "" : "|") + key;
  }
  const std::string like_call =
      fmt::format("/\\s*\\{{(?s:.*)[\"']({})[\"']\\s*:\\s*[\"']({})[\"'](?s:.*)/", keys, names);
  const std::string& tag = layout_.mark_after_text;
  const std::string unwritten = without_starts({tag});
  const std::string free = fmt::format("PROSE{}", count_++);
  rules_ += fmt::format("{}: {} & ~{}{}\n", free, kAnyText, like_call,
                        unwritten.empty() ? "" : " & ~" + unwritten);
  const std::string bound = rule(calls(0));
  std::string first;
  for (const Tool& tool : request_.tools.list()) {
    first += (first.empty() ? "" : " | ") + rule(spaced_call(tool));
  }
  if (request_.parallel) {
    first = "(" + first + ") (" + literal(layout_.between) + " " + bound + ")?";
  }
  const std::string lead =
      unwritten.empty() ? free + " " + literal(tag) : text_before(tag, kAnyText, like_call);
  return thinking({}) + " (" + rule(first) + " | " + free + " | " + lead + " " + bound + ")";
}

/// Messages of free text, of which the last may be a call.
std::string GrammarWriter::open_messages() {
  std::string heads;
  for (const std::string channel : {"final", "commentary", "analysis"}) {
    if (channel == "analysis" && !request_.may_think) continue;
    for (const char* type : {"", " <|constrain|>json"}) {
      heads +=
          (heads.empty() ? "" : " | ") + literal("<|channel|>" + channel + type + "<|message|>");
    }
  }
  const std::string head = rule(heads);
  const std::string unwritten = without_starts(dialect_.syntax->literals());
  const std::string free = fmt::format("PROSE{}", count_++);
  rules_ += free + ": " + kAnyText + (unwritten.empty() ? "" : " & ~" + unwritten) + "\n";
  const std::string message =
      rule(head + " " + text_before("<|end|>") + " " + literal("<|start|>") + " \"assistant\"");
  return message + "* (" + head + " " + free + " | " + rule(calls(0)) + ")";
}

/// `space` follows it.
std::string GrammarWriter::thinking(const std::string& space) {
  if (!request_.may_think) return {};
  if (dialect_.syntax->owns_answer()) {
    return "(" + literal("<|channel|>analysis<|message|>") + " " + text_before("<|end|>") + " " +
           literal("<|start|>") + " \"assistant\")?";
  }
  if (!request_.thinking) return {};
  const std::string rest = text_before(request_.thinking->end) + " " + space;
  if (request_.in_thinking) return rest;
  return "(" + literal(request_.thinking->start) + " " + rest + ")?";
}

std::string GrammarWriter::call(const Tool& tool, std::string_view pattern) {
  const Schema schema = schema_of(tool);
  tool_ = &tool;
  std::string result;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) result += literal(std::exchange(plain, {})) + " ";
  };
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

Result<std::string> call_grammar(const Dialect& dialect, const GrammarRequest& request) {
  return GrammarWriter(dialect, request).write_calls();
}

Result<std::string> open_grammar(const Dialect& dialect, const GrammarRequest& request) {
  return GrammarWriter(dialect, request).write_open();
}

Result<std::string> text_grammar(const Dialect& dialect,
                                 const GrammarRequest& request,
                                 const TextForm& form) {
  return GrammarWriter(dialect, request).write_text(form);
}

}  // namespace tandem::dialect
