#include "chat/lark_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tandem::chat {
namespace {

using Kind = LarkToken::Kind;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_number(char c) { return c >= '0' && c <= '9'; }

class LarkScanner {
 public:
  explicit LarkScanner(std::string_view source) : source_(source) {}

  Result<std::vector<LarkToken>> all() {
    while (at_ < source_.size()) {
      if (Status ok = next(); !ok) return ok.error();
    }
    add(Kind::kLine, {});
    add(Kind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  Status next() {
    const char c = source_[at_];
    const std::string_view rest = source_.substr(at_);
    if (c == '\n') {
      add(Kind::kLine, {});
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (rest.starts_with("//") || c == '#') {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else if (c == '"') {
      return text('"', Kind::kString);
    } else if (c == '/') {
      return text('/', Kind::kRegex);
    } else if (c == '%') {
      ++at_;
      add(Kind::kDirective, word());
    } else if (is_letter(c) || ((c == '?' || c == '!') && begins_rule())) {
      if (!is_letter(c)) ++at_;  // ?rule and !rule differ in trees only
      add(Kind::kName, word());
    } else if (is_number(c)) {
      add(Kind::kNumber, word());
    } else {
      mark(rest);
    }
    return {};
  }

  bool begins_rule() const {
    const bool is_first = tokens_.empty() || tokens_.back().kind == Kind::kLine;
    return is_first && at_ + 1 < source_.size() && is_letter(source_[at_ + 1]);
  }

  std::string word() {
    const size_t begin = at_;
    while (at_ < source_.size() && (is_letter(source_[at_]) || is_number(source_[at_]))) ++at_;
    return std::string(source_.substr(begin, at_ - begin));
  }

  void mark(std::string_view rest) {
    size_t size = 1;
    if (rest.starts_with("->") || rest.starts_with("..")) size = 2;
    add(Kind::kMark, std::string(rest.substr(0, size)));
    at_ += size;
  }

  /// A string, or a pattern, which may have several lines, with the flags behind it.
  Status text(char quote, Kind kind) {
    std::string inside;
    size_t at = at_ + 1;
    const bool has_lines = kind == Kind::kRegex;
    while (at < source_.size() && source_[at] != quote && (has_lines || source_[at] != '\n')) {
      const bool is_escape = source_[at] == '\\' && at + 1 < source_.size();
      if (is_escape) inside += source_[at++];
      inside += source_[at++];
    }
    if (at >= source_.size() || source_[at] != quote) {
      return lark_error(line_,
                        has_lines ? "a pattern does not end" : "a string does not end in its line");
    }
    at_ = at + 1;
    std::string flags;
    while (at_ < source_.size() && is_letter(source_[at_])) flags += source_[at_++];
    const auto lines = static_cast<int>(std::ranges::count(inside, '\n'));
    if (kind == Kind::kString) {
      auto meant = unescaped(inside);
      if (!meant) return meant.error();
      inside = *std::move(meant);
    }
    tokens_.push_back({.kind = kind, .text = inside, .flags = std::move(flags), .line = line_});
    line_ += lines;
    return {};
  }

  Result<std::string> unescaped(std::string_view text) const {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      constexpr std::string_view kNames = "ntrf\\\"/'";
      constexpr std::string_view kMeant = "\n\t\r\f\\\"/'";
      const size_t known = kNames.find(c);
      if (known == std::string_view::npos) {
        return lark_error(line_, fmt::format("the escape \\{} is not offered in strings", c));
      }
      out += kMeant[known];
    }
    return out;
  }

  void add(Kind kind, std::string text) {
    tokens_.push_back({.kind = kind, .text = std::move(text), .flags = {}, .line = line_});
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<LarkToken> tokens_;
};

}  // namespace

Error lark_error(int line, const std::string& message) {
  return {.code = ErrorCode::kInvalid,
          .message = fmt::format("line {} of the grammar: {}", line, message),
          .field = "grammar"};
}

Result<std::vector<LarkToken>> lark_tokens(std::string_view source) {
  return LarkScanner(source).all();
}

}  // namespace tandem::chat
