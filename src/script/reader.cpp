#include "script/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

namespace tandem::script {
namespace {

constexpr size_t kMostDelay = 3'600'000;  // ms
constexpr size_t kMostTimes = 1'000'000;

std::string shortened(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "…";
}

/// Reads values at places and keeps the first error, so that reading is a list of fields.
class Reader {
 public:
  std::optional<Error> error;
  std::set<std::string> names = {};  // of variables that a regular expression may find

  void fail(const std::string& place, const std::string& expected, const Json& came) {
    if (error) return;
    error = Error{ErrorCode::kInvalid,
                  fmt::format("{}: expected {}, not {}", place, expected, shortened(came))};
  }

  /// Calls `field(key, value, place)` for each member; `known` are the keys there may be.
  void members(
      const Json& object,
      const std::string& place,
      const std::vector<std::string>& known,
      const std::function<void(const std::string&, const Json&, const std::string&)>& field) {
    if (!object.is_object()) return fail(place, "an object", object);
    for (const auto& [key, value] : object.items()) {
      const std::string inner = place.empty() ? key : place + "." + key;
      if (std::ranges::find(known, key) == known.end())
        return fail(inner, fmt::format("one of the keys {}", fmt::join(known, ", ")), Json(key));
      field(key, value, inner);
    }
  }

  std::string text(const Json& value, const std::string& place) {
    if (value.is_string()) return value.get<std::string>();
    fail(place, "a string", value);
    return {};
  }

  size_t number(const Json& value, const std::string& place, size_t least, size_t most) {
    if (value.is_number_unsigned() && value.get<size_t>() >= least && value.get<size_t>() <= most)
      return value.get<size_t>();
    fail(place, fmt::format("a whole number from {} to {}", least, most), value);
    return least;
  }

  std::chrono::milliseconds delay(const Json& value, const std::string& place) {
    return std::chrono::milliseconds(number(value, place, 0, kMostDelay));
  }

  /// A regular expression or a list of some.
  void searches(Place in, const Json& value, const std::string& place, std::vector<Search>& out) {
    if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i)
        searches(in, value[i], fmt::format("{}[{}]", place, i), out);
      return;
    }
    auto pattern = Pattern::compile(text(value, place));
    if (!pattern) return fail(place, pattern.error().message, value);
    names.insert(pattern->names().begin(), pattern->names().end());
    out.push_back({.in = in, .pattern = std::move(*pattern)});
  }

  Pace pace(const Json& value, const std::string& place, Pace pace) {
    members(value, place, {"tokens", "first_ms", "step_ms"},
            [&](const std::string& key, const Json& of, const std::string& at) {
              if (key == "tokens") pace.tokens = number(of, at, 1, 4096);
              if (key == "first_ms") pace.first = delay(of, at);
              if (key == "step_ms") pace.step = delay(of, at);
            });
    return pace;
  }

  void tools(const Json& value, const std::string& place, When& when) {
    if (!value.is_array()) return fail(place, "a list of tools", value);
    when.no_tools = value.empty();
    for (size_t i = 0; i < value.size(); ++i)
      when.tools.push_back(text(value[i], fmt::format("{}[{}]", place, i)));
  }

  When when(const Json& value, const std::string& place) {
    When when;
    members(value, place, {"results", "tools", "user", "last", "result", "system"},
            [&](const std::string& key, const Json& of, const std::string& at) {
              if (key == "results") {
                when.results = number(of, at, 0, 1'000'000);
              } else if (key == "tools") {
                tools(of, at, when);
              } else {
                searches(*place_named(key), of, at, when.searches);
              }
            });
    return when;
  }

  void call(const Json& value, const std::string& place, Part& part) {
    members(value, place, {"name", "arguments"},
            [&](const std::string& key, const Json& of, const std::string& at) {
              if (key == "name") part.tool = text(of, at);
              if (key == "arguments") part.arguments = of;
              if (key == "arguments" && !of.is_object()) fail(at, "an object", of);
            });
    if (part.tool.empty()) fail(place, "a name of a tool", value);
  }

  Part part(const Json& value, const std::string& place) {
    Part part;
    size_t kinds = 0;
    members(value, place, {"think", "text", "call", "times"},
            [&](const std::string& key, const Json& of, const std::string& at) {
              if (key == "times") {
                part.times = number(of, at, 1, kMostTimes);
                return;
              }
              ++kinds;
              if (key == "call") return call(of, at, part);
              part.channel = key == "think" ? dialect::Channel::kThinking : dialect::Channel::kText;
              part.text = text(of, at);
            });
    if (kinds != 1) fail(place, "exactly one of think, text and call", value);
    return part;
  }

  std::vector<Part> say(const Json& value, const std::string& place) {
    if (value.is_string())
      return {{.channel = dialect::Channel::kText, .text = value.get<std::string>()}};
    std::vector<Part> parts;
    if (!value.is_array()) fail(place, "a string or a list of parts", value);
    for (size_t i = 0; value.is_array() && i < value.size(); ++i)
      parts.push_back(part(value[i], fmt::format("{}[{}]", place, i)));
    return parts;
  }

  Error failure(const Json& value, const std::string& place) {
    Error made{.code = ErrorCode::kInternal, .message = "the script says so"};
    members(value, place, {"code", "message"},
            [&](const std::string& key, const Json& of, const std::string& at) {
              if (key == "message") made.message = text(of, at);
              if (key == "code") made.code = code(of, at);
            });
    return made;
  }

  ErrorCode code(const Json& value, const std::string& place) {
    std::vector<std::string> known;
    for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
      const auto each = static_cast<ErrorCode>(i);
      if (value == name(each)) return each;
      known.emplace_back(name(each));
    }
    fail(place, fmt::format("one of {}", fmt::join(known, ", ")), value);
    return ErrorCode::kInternal;
  }

  Rule rule(const Json& value, const std::string& place, const Pace& usual) {
    Rule rule{.pace = usual};
    members(value, place, {"when", "say", "pace", "refuse", "fail", "hang"},
            [&](const std::string& key, const Json& of, const std::string& at) {
              if (key == "when") rule.when = when(of, at);
              if (key == "say") rule.say = say(of, at);
              if (key == "pace") rule.pace = pace(of, at, usual);
              if (key == "refuse") rule.refusal = failure(of, at);
              if (key == "fail") rule.failure = failure(of, at);
              if (key == "hang" && !of.is_boolean()) fail(at, "true or false", of);
              if (key == "hang" && of.is_boolean()) rule.hangs = of.get<bool>();
            });
    if (!value.contains("say") && !rule.refusal && !rule.failure && !rule.hangs)
      fail(place, "say, refuse, fail or hang", value);
    return rule;
  }

  /// Every ${name} is one that some regular expression may find.
  void check_names(const Json& value, const std::string& place) {
    if (value.is_structured()) {
      for (const auto& [key, inner] : value.items()) check_names(inner, place);
    }
    if (!value.is_string()) return;
    const auto all = value.get<std::string>();
    for (size_t at = all.find("${"); at != std::string::npos; at = all.find("${", at + 2)) {
      if (at > 0 && all[at - 1] == '$') continue;
      const size_t close = all.find('}', at);
      if (close == std::string::npos) return fail(place, "${…} to be closed", value);
      if (const std::string name = all.substr(at + 2, close - at - 2); !names.contains(name))
        return fail(place,
                    fmt::format("a variable that a regular expression of the script names as "
                                "(?<{}>…)",
                                name),
                    value);
    }
  }
};

}  // namespace

Result<ScriptParts> read_script(const Json& document) {
  Reader reader;
  ScriptParts parts;
  Pace usual;
  if (document.is_object() && document.contains("pace"))
    usual = reader.pace(document["pace"], "pace", usual);
  reader.members(
      document, "", {"pace", "find", "rules"},
      [&](const std::string& key, const Json& value, const std::string& place) {
        if (key == "find") {
          reader.members(value, place, {"user", "last", "result", "system"},
                         [&](const std::string& in, const Json& of, const std::string& at) {
                           reader.searches(*place_named(in), of, at, parts.find);
                         });
        }
        if (key != "rules") return;
        if (!value.is_array()) return reader.fail(place, "a list of rules", value);
        for (size_t i = 0; i < value.size(); ++i)
          parts.rules.push_back(reader.rule(value[i], fmt::format("rules[{}]", i), usual));
      });
  if (parts.rules.empty()) reader.fail("rules", "at least one rule", document);
  for (size_t i = 0; i < parts.rules.size(); ++i) {
    const Json& rule = document["rules"][i];
    if (rule.contains("say")) reader.check_names(rule["say"], fmt::format("rules[{}].say", i));
  }
  if (reader.error) return *reader.error;
  return parts;
}

}  // namespace tandem::script
