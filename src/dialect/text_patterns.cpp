#include "dialect/text_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "dialect/grammar.h"

namespace tandem::dialect {
namespace {

constexpr double kMostCount = 1e15;
constexpr uint64_t kMostLength = 10'000;  // of a string, by counting its characters

// RFC 3339; a year has its 29th of February in each fourth year, but for those of full hundreds
// that 400 does not divide.
constexpr const char* kDate =
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
    "02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|"
    "(0[48]|[2468][048]|[13579][26])00)-02-29)";
constexpr const char* kTime =
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
// RFC 3339, appendix A.
constexpr const char* kDuration =
    "P([0-9]+W|([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)?"
    "(T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))?)";
// RFC 1123.
constexpr const char* kHost =
    "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*";
constexpr const char* kByte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
constexpr const char* kHex = "[0-9A-Fa-f]";
// RFC 3986: of a path, and what may stand in a query besides.
constexpr const char* kUriChar = "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";

std::string address4() { return fmt::format("{0}(\\.{0}){{3}}", kByte); }

/// RFC 4291, without addresses of version 4 inside: eight groups, or fewer around one "::".
std::string address6() {
  const std::string group = fmt::format("{}{{1,4}}", kHex);
  std::string any = fmt::format("{0}(:{0}){{7}}", group);
  for (int before = 0; before <= 7; ++before) {
    const std::string left =
        before == 0 ? "" : fmt::format("{0}(:{0}){{0,{1}}}", group, before - 1);
    const int after = 7 - before;
    const std::string right =
        after == 0 ? "" : fmt::format("({0}(:{0}){{0,{1}}})?", group, after - 1);
    any += fmt::format("|{}::{}", left, right);
  }
  return "(" + any + ")";
}

std::string uri() {
  const std::string path = fmt::format("(/{}*)*", kUriChar);
  return fmt::format(
      "[A-Za-z][A-Za-z0-9+.-]*:(//([A-Za-z0-9._~!$&'()*+,;=-]|%{1}{{2}})*(:[0-9]{{1,5}})?{2}|"
      "/?({0}+{2})?)(\\?({0}|[/?])*)?(#({0}|[/?])*)?",
      kUriChar, kHex, path);
}

/// As a regular expression of the whole; empty for others.
std::string format_pattern(std::string_view format) {
  if (format == "date") return kDate;
  if (format == "time") return kTime;
  if (format == "date-time") return fmt::format("{}T{}", kDate, kTime);
  if (format == "duration") return kDuration;
  if (format == "hostname") return kHost;
  if (format == "email") {
    constexpr const char* kWord = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
    return fmt::format("{0}(\\.{0})*@{1}", kWord, kHost);
  }
  if (format == "ipv4") return address4();
  if (format == "ipv6") return address6();
  if (format == "uuid") return fmt::format("{0}{{8}}(-{0}{{4}}){{3}}-{0}{{12}}", kHex);
  return format == "uri" ? uri() : std::string();
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

/// Alternatives that no bracket is around.
struct Alternative {
  std::string text;
  bool from_start = false;
  bool to_end = false;
};

/// Nothing where an anchor stands inside of one.
std::optional<std::vector<Alternative>> alternatives_of(std::string_view pattern) {
  std::vector<Alternative> all(1);
  int depth = 0;
  bool is_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    Alternative& now = all.back();
    const bool is_outside = !is_class && depth == 0;
    if (now.to_end && !(is_outside && c == '|')) return std::nullopt;
    if (!is_class && (c == '^' || c == '$')) {
      const bool is_start = c == '^' && is_outside && now.text.empty() && !now.from_start;
      if (!is_start && (c == '^' || !is_outside)) return std::nullopt;
      (is_start ? now.from_start : now.to_end) = true;
      continue;
    }
    if (is_outside && c == '|') {
      all.emplace_back();
      continue;
    }
    if (!is_class && c == '(') ++depth;
    if (!is_class && c == ')') --depth;
    if (c == '[') is_class = true;
    if (c == ']') is_class = false;
    now.text += c;
    if (c == '\\' && i + 1 < pattern.size()) now.text += pattern[++i];
    if (c == '[' && i + 1 < pattern.size() && pattern[i + 1] == '^') now.text += pattern[++i];
  }
  return all;
}

void take_in(std::string& all, const std::string& more) {
  all += all.empty() ? more : " & " + more;
}

Json as_list(const Json& value) { return value.is_array() ? value : Json::array({value}); }

}  // namespace

uint64_t count_in(const Json& keywords, const char* name, uint64_t missing) {
  const Json count = keywords.value(name, Json());
  if (!count.is_number() || count < 0 || count > kMostCount) return missing;
  return static_cast<uint64_t>(std::ceil(count.get<double>()));
}

std::optional<std::string> search_expression(std::string_view pattern) {
  constexpr std::string_view kOpen = "^(?:";
  constexpr std::string_view kClose = ")$";
  if (pattern.starts_with(kOpen) && pattern.ends_with(kClose)) {
    const std::string_view inner =
        pattern.substr(kOpen.size(), pattern.size() - kOpen.size() - kClose.size());
    if (is_balanced(inner)) return regex_expression(inner);
  }
  const auto alternatives = alternatives_of(pattern);
  if (!alternatives) return std::nullopt;
  std::string any;
  for (const Alternative& each : *alternatives) {
    any += fmt::format("{}{}(?:{}){}", any.empty() ? "" : "|", each.from_start ? "" : "(?s:.*)",
                       each.text, each.to_end ? "" : "(?s:.*)");
  }
  return regex_expression(any);
}

std::string string_expression(const Way& way, std::string& unbound) {
  const Json& keywords = way.keywords;
  std::string all;
  const uint64_t least = count_in(keywords, "minLength", 0);
  const uint64_t most = count_in(keywords, "maxLength", UINT64_MAX);
  if (least > kMostLength) unbound = "minLength";
  if (most != UINT64_MAX && most > kMostLength) unbound = "maxLength";
  if (!unbound.empty()) return kAnyText;
  if (least > 0 || most != UINT64_MAX) {
    const std::string upper = most == UINT64_MAX ? "" : std::to_string(most);
    take_in(all, fmt::format("/(?s:.{{{},{}}})/", least, upper));
  }
  for (const Json& pattern : as_list(keywords.value("pattern", Json::array()))) {
    const auto found = pattern.is_string() ? search_expression(pattern.get<std::string>())
                                           : std::optional<std::string>();
    if (!found) unbound = "pattern";
    if (found) take_in(all, *found);
  }
  for (const Json& format : as_list(keywords.value("format", Json::array()))) {
    const std::string found = format.is_string() ? format_pattern(format.get<std::string>()) : "";
    if (found.empty() && format != "unknown") unbound = "format";
    if (!found.empty()) take_in(all, regex_expression(found));
  }
  return all.empty() ? kAnyText : all;
}

std::string misread_expression(Kinds kinds) {
  std::string any;
  const auto add = [&](const char* pattern) {
    any += (any.empty() ? "" : "|") + std::string(pattern);
  };
  if ((kinds & kNull) != 0) add("(?i:null|none|nil)");
  if ((kinds & kBoolean) != 0) add("(?i:true|false|yes|no|on|off|0|1)");
  if ((kinds & kNumbers) != 0) add("-?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?");
  if ((kinds & (kArray | kObject)) != 0) add("[\\[{](?s:.*)");
  return fmt::format("/\\s*({})\\s*/", any);
}

std::string scalar_expression(Kinds kinds) {
  std::string any;
  const auto add = [&](const char* pattern) {
    any += (any.empty() ? "" : "|") + std::string(pattern);
  };
  if ((kinds & kNull) != 0) add("null");
  if ((kinds & kBoolean) != 0) add("true|false");
  if ((kinds & kNumber) != 0) add("-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,17})?");
  if ((kinds & kNumbers) == kInteger) add("-?(0|[1-9][0-9]{0,17})");
  return any.empty() ? any : "/" + any + "/";
}

}  // namespace tandem::dialect
