#include "chat/lark_regex.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "chat/lark_reader.h"
#include "chat/lark_tokens.h"
#include "grammar/pattern_limits.h"

namespace tandem::chat {
namespace {

constexpr int kDeepestNode = 1024;  // of rules in each other and what they are made of

bool is_terminal(std::string_view name) {
  return name.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
}

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
    if (out && out->size() > grammar::kMostPatternBytes) return too_long();
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
      if (all.size() > grammar::kMostPatternBytes) return too_long();
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
    // What is imported is a terminal, whatever it is called here.
    const bool is_word = is_terminal(node.text) || rule->second.kind == LarkNode::Kind::kPattern;
    auto out = is_word ? written(rule->second, true) : repeated(node.text, rule->second);
    open_.erase(node.text);
    if (out && is_word && !in_terminal) *out = skipped_ + *out;
    if (out) known_[key] = *out;
    return out;
  }

  static Error too_long() {
    return {.code = ErrorCode::kUnsupported,
            .message = fmt::format("as one expression it has more than {} bytes",
                                   grammar::kMostPatternBytes),
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
  auto grammar = read_lark(source);
  if (!grammar) return grammar.error();
  return LarkWriter(*std::move(grammar)).write();
}

}  // namespace tandem::chat
