#include "chat/lark_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "chat/lark_tokens.h"

namespace tandem::chat {
namespace {

using Kind = LarkToken::Kind;

constexpr int kDeepestGroup = 64;

/// Lark's common terminals.
constexpr std::array<std::pair<std::string_view, std::string_view>, 23> kCommon = {{
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[a-fA-F0-9]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "(?:[0-9]+\\.[0-9]*|\\.[0-9]+)"},
    {"FLOAT", "(?:(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"},
    {"NUMBER", "(?:(?:[0-9]+\\.[0-9]*|\\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"SIGNED_FLOAT",
     "[+-]?(?:(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"},
    {"SIGNED_NUMBER", "[+-]?(?:(?:[0-9]+\\.[0-9]*|\\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", "\"(?:[^\"\\\\\\n]|\\\\.)*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[_A-Za-z][_A-Za-z0-9]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(?:\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"SQL_COMMENT", "--[^\\n]*"},
}};

std::string_view common_terminal(std::string_view name) {
  for (const auto& [known, pattern] : kCommon) {
    if (known == name) return pattern;
  }
  return {};
}

/// The text as a pattern.
std::string as_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    constexpr std::string_view kNames = "\n\t\r\f";
    const size_t control = kNames.find(c);
    if (control != std::string_view::npos) {
      out += '\\';
      out += "ntrf"[control];
      continue;
    }
    if (std::string_view("\\^$.|?*+()[]{}/&~-").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// A pattern of the flag x without it: its spaces, and comments up to the end of a line, say
/// nothing.
std::string without_spaces(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      out += next == ' ' ? "\\x20" : std::string{c, next};
    } else if (c == '#') {
      i = std::min(pattern.find('\n', i), pattern.size());
    } else if (std::string_view(" \t\r\n\v\f").find(c) == std::string_view::npos) {
      out += c;
    }
  }
  return out;
}

/// How long {n}, {n,} or {n,m} is that the text begins with; 0 where it begins with none.
size_t size_of_count(std::string_view text) {
  if (!text.starts_with('{')) return 0;
  const size_t end = text.find_first_not_of("0123456789,", 1);
  if (end == std::string_view::npos || end == 1 || text[end] != '}') return 0;
  return end + 1;
}

/// What the rest of a pattern, which begins no class, has here that is not offered.
const char* unoffered_here(std::string_view rest, bool is_behind_count) {
  for (const char* around : {"(?=", "(?!", "(?<=", "(?<!"}) {
    if (rest.starts_with(around)) return "lookaround";
  }
  if (rest.size() > 1 && rest[0] == '\\' && rest[1] >= '1' && rest[1] <= '9') {
    return "backreferences";
  }
  return is_behind_count && rest.starts_with('?') ? "lazy quantifiers" : nullptr;
}

/// What a pattern has that the engine, and OpenAI's, do not offer; nullptr when there is nothing.
const char* unoffered(std::string_view pattern) {
  bool is_class = false;
  bool is_behind_count = false;  // * + ? or {n,m}
  for (size_t i = 0; i < pattern.size();) {
    const std::string_view rest = pattern.substr(i);
    const char* what = is_class ? nullptr : unoffered_here(rest, is_behind_count);
    if (what != nullptr) return what;
    const size_t counted = is_class ? 0 : size_of_count(rest);
    const bool opens = i > 0 && pattern[i - 1] == '(' && rest[0] == '?';
    is_behind_count =
        counted > 0 ||
        (!is_class && !opens && std::string_view("*+?").find(rest[0]) != std::string_view::npos);
    if (rest[0] == '[') is_class = true;
    if (rest[0] == ']') is_class = false;
    i += rest[0] == '\\' ? 2 : std::max<size_t>(counted, 1);
  }
  return nullptr;
}

/// Whether the text is one letter, of one byte or more.
bool is_one_letter(std::string_view text) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return std::ranges::count_if(text, begins) == 1 && begins(text.front());
}

class LarkReader {
 public:
  explicit LarkReader(std::vector<LarkToken> tokens) : tokens_(std::move(tokens)) {}

  Result<LarkGrammar> read() {
    while (here().kind != Kind::kEnd) {
      if (here().kind == Kind::kLine) {
        ++at_;
        continue;
      }
      const Status ok = here().kind == Kind::kDirective ? directive() : rule();
      if (!ok) return ok.error();
    }
    return std::move(grammar_);
  }

 private:
  const LarkToken& here() const { return tokens_[at_]; }
  const LarkToken& behind() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }

  bool take(std::string_view mark) {
    if (!here().is(mark)) return false;
    ++at_;
    return true;
  }

  Error unexpected(std::string_view wanted) const {
    const bool is_over = here().kind == Kind::kLine || here().kind == Kind::kEnd;
    return lark_error(here().line, fmt::format("expected {}, not {}", wanted,
                                               is_over ? "the end of the line"
                                                       : "'" + here().text.substr(0, 40) + "'"));
  }

  Status rule() {
    if (here().kind != Kind::kName) return unexpected("the name of a rule");
    const LarkToken name = here();
    ++at_;
    if (here().is("{")) return lark_error(name.line, "templates are not offered");
    if (take(".")) ++at_;  // a priority
    if (!take(":")) return unexpected("':'");
    auto body = choice(0);
    if (!body) return body.error();
    if (here().kind != Kind::kLine) return unexpected("the end of the rule");
    if (!grammar_.rules.emplace(name.text, *std::move(body)).second) {
      return lark_error(name.line, fmt::format("'{}' is there twice", name.text));
    }
    return {};
  }

  Status directive() {
    const LarkToken word = here();
    ++at_;
    if (word.text == "import") return imported();
    if (word.text != "ignore") {
      return lark_error(word.line, fmt::format("%{} is not offered", word.text));
    }
    auto body = choice(0);
    if (!body) return body.error();
    grammar_.ignored.push_back(*std::move(body));
    return {};
  }

  /// common.NAME, common.NAME -> OTHER, or common (NAME, …).
  Status imported() {
    if (here().kind != Kind::kName || here().text != "common") {
      return lark_error(here().line, "%import is offered of common alone");
    }
    ++at_;
    const bool is_list = here().is("(");
    if (!is_list && !here().is(".")) return unexpected("'.'");
    do {
      ++at_;
      const LarkToken name = here();
      const std::string_view pattern = common_terminal(name.text);
      if (pattern.empty()) {
        return lark_error(name.line, fmt::format("there is no common.{}", name.text.substr(0, 40)));
      }
      ++at_;
      std::string own = name.text;
      if (!is_list && take("->")) {
        if (here().kind != Kind::kName) return unexpected("a name");
        own = here().text;
        ++at_;
      }
      grammar_.rules.insert_or_assign(own, LarkNode{.kind = LarkNode::Kind::kPattern,
                                                    .text = std::string(pattern),
                                                    .line = name.line});
    } while (is_list && here().is(","));
    if (is_list && !take(")")) return unexpected("')'");
    return {};
  }

  void skip_lines() {
    while (here().kind == Kind::kLine) ++at_;
  }

  /// Whether an alternative follows, also on a later line.
  bool has_another() {
    size_t next = at_;
    while (tokens_[next].kind == Kind::kLine) ++next;
    if (!tokens_[next].is("|")) return false;
    at_ = next + 1;
    return true;
  }

  Result<LarkNode> choice(int depth) {
    if (depth > kDeepestGroup) return lark_error(here().line, "groups go too deep");
    LarkNode out{.kind = LarkNode::Kind::kChoice, .line = here().line};
    do {
      auto one = sequence(depth);
      if (!one) return one.error();
      out.parts.push_back(*std::move(one));
      if (take("->")) ++at_;  // an alias
      if (depth > 0) skip_lines();
    } while (has_another());
    return out;
  }

  Result<LarkNode> sequence(int depth) {
    LarkNode out{.kind = LarkNode::Kind::kSequence, .line = here().line};
    while (true) {
      if (depth > 0) skip_lines();
      const LarkToken& next = here();
      const bool begins = next.kind == Kind::kName || next.kind == Kind::kString ||
                          next.kind == Kind::kRegex || next.is("(") || next.is("[");
      if (!begins) return out;
      auto one = item(depth);
      if (!one) return one.error();
      out.parts.push_back(*std::move(one));
    }
  }

  Result<LarkNode> item(int depth) {
    const int line = here().line;
    auto inner = atom(depth);
    if (!inner) return inner;
    std::string count;
    if (here().is("?") || here().is("*") || here().is("+")) {
      count = here().text;
      ++at_;
    } else if (take("~")) {
      if (here().kind != Kind::kNumber) return unexpected("a number");
      count = "{" + here().text;
      ++at_;
      if (take("..")) {
        if (here().kind != Kind::kNumber) return unexpected("a number");
        count += "," + here().text;
        ++at_;
      }
      count += "}";
    }
    if (count.empty()) return inner;
    return LarkNode{.kind = LarkNode::Kind::kRepeat,
                    .text = std::move(count),
                    .parts = {*std::move(inner)},
                    .line = line};
  }

  Result<LarkNode> atom(int depth) {
    const LarkToken token = here();
    ++at_;
    if (token.kind == Kind::kName) {
      if (here().is("{")) return lark_error(token.line, "templates are not offered");
      return LarkNode{.kind = LarkNode::Kind::kName, .text = token.text, .line = token.line};
    }
    if (token.kind == Kind::kRegex) return pattern(token);
    if (token.kind == Kind::kString) return here().is("..") ? range(token) : text(token);
    auto inner = choice(depth + 1);
    if (!inner) return inner;
    const bool is_optional = token.is("[");
    if (!take(is_optional ? "]" : ")")) return unexpected(is_optional ? "']'" : "')'");
    if (!is_optional) return inner;
    return LarkNode{.kind = LarkNode::Kind::kRepeat,
                    .text = "?",
                    .parts = {*std::move(inner)},
                    .line = token.line};
  }

  static Result<LarkNode> text(const LarkToken& token) {
    if (!token.flags.empty() && token.flags != "i") {
      return lark_error(token.line,
                        fmt::format("the flag {} of strings is not offered", token.flags));
    }
    std::string pattern = as_pattern(token.text);
    if (!token.flags.empty()) pattern = "(?i:" + pattern + ")";
    return LarkNode{
        .kind = LarkNode::Kind::kPattern, .text = std::move(pattern), .line = token.line};
  }

  static Result<LarkNode> pattern(const LarkToken& token) {
    bool is_spaced = false;
    std::string flags;
    for (const char flag : token.flags) {
      if (flag == 'u') continue;  // patterns are of Unicode anyway
      if (flag != 'i' && flag != 's' && flag != 'm' && flag != 'x') {
        return lark_error(token.line, fmt::format("the flag {} of patterns is not offered", flag));
      }
      if (flag == 'x') {
        is_spaced = true;
      } else {
        flags += flag;
      }
    }
    const std::string inside = is_spaced ? without_spaces(token.text) : token.text;
    if (const char* what = unoffered(inside); what != nullptr) {
      return lark_error(token.line, fmt::format("a pattern has {}, which are not offered", what));
    }
    std::string pattern = "(?" + flags + ":" + inside + ")";
    return LarkNode{
        .kind = LarkNode::Kind::kPattern, .text = std::move(pattern), .line = token.line};
  }

  Result<LarkNode> range(const LarkToken& first) {
    ++at_;
    const LarkToken last = here();
    // Of UTF-8 the order is that of its letters.
    if (last.kind != Kind::kString || !is_one_letter(first.text) || !is_one_letter(last.text) ||
        first.text > last.text) {
      return lark_error(first.line, "a range goes from one letter to a later one");
    }
    if (!first.flags.empty() || !last.flags.empty()) {
      return lark_error(first.line, "the letters of a range have no flags");
    }
    ++at_;
    return LarkNode{.kind = LarkNode::Kind::kPattern,
                    .text = "[" + as_pattern(first.text) + "-" + as_pattern(last.text) + "]",
                    .line = first.line};
  }

  std::vector<LarkToken> tokens_;
  size_t at_ = 0;
  LarkGrammar grammar_;
};

}  // namespace

Result<LarkGrammar> read_lark(std::string_view source) {
  auto tokens = lark_tokens(source);
  if (!tokens) return tokens.error();
  return LarkReader(*std::move(tokens)).read();
}

}  // namespace tandem::chat
