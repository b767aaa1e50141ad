#include "chat/lark_regex.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "chat/lark_tokens.h"

namespace tandem::chat {
namespace {

using Kind = LarkToken::Kind;

constexpr size_t kLongestPattern = 4096;  // of what grammars of answers may have
constexpr int kDeepestGroup = 64;
constexpr int kDeepestNode = 1024;  // of rules in each other and what they are made of

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

/// What a pattern has that the engine, and OpenAI's, do not offer; empty when there is nothing.
std::string unoffered(std::string_view pattern) {
  bool is_class = false;
  char before = '\0';  // a quantifier, if the last part was one
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    const char c = pattern[i];
    if (c == '\\') {
      const char next = rest.size() > 1 ? rest[1] : '\0';
      if (!is_class && next >= '1' && next <= '9') return "backreferences";
      ++i, before = '\0';
      continue;
    }
    if (!is_class && (rest.starts_with("(?=") || rest.starts_with("(?!") ||
                      rest.starts_with("(?<=") || rest.starts_with("(?<!"))) {
      return "lookaround";
    }
    const bool quantifies = c == '*' || c == '+' || c == '?' || c == '}';
    if (!is_class && before != '\0' && c == '?') return "lazy quantifiers";
    const bool opens = c == '?' && i > 0 && pattern[i - 1] == '(';
    before = quantifies && !opens && !is_class ? c : '\0';
    if (c == '[') is_class = true;
    if (c == ']') is_class = false;
  }
  return {};
}

/// A part of a rule.
struct LarkNode {
  enum class Kind : uint8_t { kPattern, kName, kSequence, kChoice, kRepeat };

  Kind kind = Kind::kSequence;
  std::string text = {};  // a pattern, a name, or the count of a repetition
  std::vector<LarkNode> parts = {};
  int line = 1;
};

bool is_terminal(std::string_view name) {
  return name.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
}

struct LarkGrammar {
  std::map<std::string, LarkNode> rules = {};
  std::vector<LarkNode> ignored = {};
};

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
    if (const std::string what = unoffered(token.text); !what.empty()) {
      return lark_error(token.line, fmt::format("a pattern has {}, which are not offered", what));
    }
    std::string flags;
    for (const char flag : token.flags) {
      if (flag == 'u') continue;  // patterns are of Unicode anyway
      if (flag != 'i' && flag != 's' && flag != 'm' && flag != 'x') {
        return lark_error(token.line, fmt::format("the flag {} of patterns is not offered", flag));
      }
      flags += flag;
    }
    std::string pattern = "(?" + flags + ":" + token.text + ")";
    return LarkNode{
        .kind = LarkNode::Kind::kPattern, .text = std::move(pattern), .line = token.line};
  }

  Result<LarkNode> range(const LarkToken& first) {
    ++at_;
    const LarkToken last = here();
    if (last.kind != Kind::kString || first.text.size() != 1 || last.text.size() != 1 ||
        first.text > last.text) {
      return lark_error(first.line, "a range goes from one letter to a later one");
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

class LarkWriter {
 public:
  explicit LarkWriter(LarkGrammar grammar) : grammar_(std::move(grammar)) {}

  Result<std::string> write() {
    if (!grammar_.rules.contains("start")) {
      return lark_error(1, "there is no rule named start");
    }
    for (const LarkNode& node : grammar_.ignored) {
      auto one = written(node, true);
      if (!one) return one;
      skipped_ += (skipped_.empty() ? "" : "|") + *one;
    }
    if (!skipped_.empty()) skipped_ = "(?:" + skipped_ + ")*";
    known_.clear();  // from here on white space may stand in front of each
    auto whole = named({.kind = LarkNode::Kind::kName, .text = "start"}, false);
    if (whole) *whole += skipped_;
    return whole;
  }

 private:
  Result<std::string> written(const LarkNode& node, bool in_terminal) {
    if (depth_ >= kDeepestNode) return lark_error(node.line, "rules go too deep");
    ++depth_;
    auto out = unchecked(node, in_terminal);
    --depth_;
    if (out && out->size() > kLongestPattern) return too_long();
    return out;
  }

  Result<std::string> unchecked(const LarkNode& node, bool in_terminal) {
    switch (node.kind) {
      case LarkNode::Kind::kPattern:
        return (in_terminal ? "" : skipped_) + node.text;
      case LarkNode::Kind::kName:
        return named(node, in_terminal);
      case LarkNode::Kind::kRepeat: {
        auto inner = written(node.parts[0], in_terminal);
        if (inner) *inner = "(?:" + *inner + ")" + node.text;
        return inner;
      }
      case LarkNode::Kind::kSequence:
      case LarkNode::Kind::kChoice:
        break;
    }
    const bool is_choice = node.kind == LarkNode::Kind::kChoice;
    std::string all;
    for (const LarkNode& part : node.parts) {
      auto one = written(part, in_terminal);
      if (!one) return one;
      all += (is_choice && &part != &node.parts[0] ? "|" : "") + *one;
      if (all.size() > kLongestPattern) return too_long();
    }
    return is_choice && node.parts.size() > 1 ? "(?:" + all + ")" : all;
  }

  Result<std::string> named(const LarkNode& node, bool in_terminal) {
    const auto rule = grammar_.rules.find(node.text);
    if (rule == grammar_.rules.end()) {
      return lark_error(node.line, fmt::format("there is no '{}'", node.text));
    }
    const std::pair key(node.text, in_terminal);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    if (!open_.insert(node.text).second) {
      return Error{.code = ErrorCode::kUnsupported,
                   .message = fmt::format("its rule '{}' nests in itself", node.text),
                   .field = "grammar"};
    }
    const bool is_word = is_terminal(node.text);
    auto out = is_word ? written(rule->second, true) : repeated(node.text, rule->second);
    open_.erase(node.text);
    if (out && is_word && !in_terminal) *out = skipped_ + *out;
    if (out) known_[key] = *out;
    return out;
  }

  static Error too_long() {
    return {.code = ErrorCode::kUnsupported,
            .message = fmt::format("as one expression it has more than {} bytes", kLongestPattern),
            .field = "grammar"};
  }

  /// A rule; with itself at an end of some of its alternatives, these are repeated.
  Result<std::string> repeated(const std::string& name, const LarkNode& body) {
    LarkNode others{.kind = LarkNode::Kind::kChoice, .line = body.line};
    LarkNode before = others;
    LarkNode behind = others;
    const auto is_self = [&](const LarkNode& part) {
      return part.kind == LarkNode::Kind::kName && part.text == name;
    };
    for (const LarkNode& one : body.parts) {
      LarkNode rest = one;
      if (one.parts.size() > 1 && is_self(one.parts.front())) {
        rest.parts.erase(rest.parts.begin());
        behind.parts.push_back(std::move(rest));
      } else if (one.parts.size() > 1 && is_self(one.parts.back())) {
        rest.parts.pop_back();
        before.parts.push_back(std::move(rest));
      } else {
        others.parts.push_back(std::move(rest));
      }
    }
    if (others.parts.empty()) {
      return lark_error(body.line, fmt::format("the rule '{}' never ends", name));
    }
    std::string out;
    for (const auto& [part, count] :
         {std::pair(&before, "*"), std::pair(&others, ""), std::pair(&behind, "*")}) {
      if (part->parts.empty()) continue;
      auto one = written(*part, false);
      if (!one) return one;
      out += *count == '\0' ? *one : "(?:" + *one + ")*";
    }
    return out;
  }

  LarkGrammar grammar_;
  int depth_ = 0;
  std::set<std::string> open_;
  std::map<std::pair<std::string, bool>, std::string> known_;  // by rule, and whether in a terminal
  std::string skipped_;
};

}  // namespace

Result<std::string> regex_of_lark(std::string_view source) {
  auto tokens = lark_tokens(source);
  if (!tokens) return tokens.error();
  auto grammar = LarkReader(*std::move(tokens)).read();
  if (!grammar) return grammar.error();
  return LarkWriter(*std::move(grammar)).write();
}

}  // namespace tandem::chat
