#include "script/script.h"

#include <fmt/format.h>

#include "script/reader.h"

namespace tandem::script {
namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

/// Adds what the search found; false where it does not match.
Result<bool> look(const Search& search, const Seen& seen, Variables& variables) {
  auto found = search.pattern.search(seen.text(search.in));
  if (!found) return found.error();
  if (!*found) return false;
  variables.merge(**found);
  return true;
}

Result<bool> fits(const When& when, const Seen& seen, Variables& variables) {
  if (when.results && *when.results != seen.results) return false;
  if (when.no_tools && !seen.tools.empty()) return false;
  for (const std::string& tool : when.tools) {
    if (!seen.offers(tool)) return false;
  }
  for (const Search& search : when.searches) {
    auto matches = look(search, seen, variables);
    if (!matches || !*matches) return matches;
  }
  return true;
}

/// ${name} becomes the variable, $${ stays ${.
Result<std::string> filled(const std::string& text, const Variables& variables) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t open = text.find("${", at);
    if (open == std::string::npos) return out + text.substr(at);
    if (open > at && text[open - 1] == '$') {
      out += text.substr(at, open - 1 - at) + "${";
      at = open + 2;
      continue;
    }
    const size_t close = text.find('}', open);
    const std::string name = text.substr(open + 2, close - open - 2);
    const auto found = variables.find(name);
    if (found == variables.end())
      return invalid(fmt::format("the script's ${{{}}} was not found in this request", name));
    out += text.substr(at, open - at) + found->second;
    at = close + 1;
  }
}

Result<Json> filled(const Json& value, const Variables& variables) {
  if (value.is_string()) {
    auto text = filled(value.get<std::string>(), variables);
    if (!text) return text.error();
    return Json(std::move(*text));
  }
  Json out = value;
  if (!value.is_structured()) return out;
  for (auto& [key, inner] : out.items()) {
    auto made = filled(inner, variables);
    if (!made) return made;
    inner = std::move(*made);
  }
  return out;
}

/// Calls beside each other are made together.
Status add(const Part& part, const Variables& variables, std::vector<dialect::AnswerPart>& parts) {
  if (part.channel) {
    auto text = filled(part.text, variables);
    if (!text) return text.error();
    std::string repeated;
    for (size_t i = 0; i < part.times; ++i) repeated += *text;
    parts.push_back({.channel = part.channel, .text = std::move(repeated)});
    return {};
  }
  auto arguments = filled(part.arguments, variables);
  if (!arguments) return arguments.error();
  if (parts.empty() || parts.back().channel) parts.emplace_back();
  parts.back().calls.push_back({.name = part.tool, .arguments = std::move(*arguments)});
  return {};
}

Result<Plan> carry_out(const Rule& rule, const Variables& variables) {
  if (rule.refusal) return *rule.refusal;
  Plan plan{.pace = rule.pace, .failure = rule.failure, .hangs = rule.hangs};
  for (const Part& part : rule.say) {
    if (const Status added = add(part, variables, plan.parts); !added) return added.error();
  }
  return plan;
}

Error no_rule(const Seen& seen) {
  std::string tools;
  for (const dialect::Tool& tool : seen.tools.list())
    tools += (tools.empty() ? "" : ", ") + tool.name;
  return invalid(
      fmt::format("no rule of the script fits this request: it has {} tool results, and tools: {}",
                  seen.results, tools.empty() ? "none" : tools));
}

}  // namespace

Result<Script> Script::parse(const std::string& json) {
  const Json document = Json::parse(json, nullptr, false);
  if (document.is_discarded()) return invalid("the script is not JSON");
  auto read = read_script(document);
  if (!read) return read.error();
  Script script;
  script.find_ = std::move(read->find);
  script.rules_ = std::move(read->rules);
  return script;
}

Result<Plan> Script::plan(const chat::Request& request) const {
  const Seen seen(request);
  Variables shared;
  for (const Search& search : find_) {
    if (const auto found = look(search, seen, shared); !found) return found.error();
  }
  for (const Rule& rule : rules_) {
    Variables variables;
    const auto matches = fits(rule.when, seen, variables);
    if (!matches) return matches.error();
    if (!*matches) continue;
    variables.insert(shared.begin(), shared.end());
    return carry_out(rule, variables);
  }
  return no_rule(seen);
}

}  // namespace tandem::script
