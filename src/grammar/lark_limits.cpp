#include "grammar/lark_limits.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "grammar/limit_errors.h"
#include "grammar/pattern_limits.h"
#include "grammar/schema_limits.h"

namespace tandem::grammar {
namespace {

constexpr size_t kMostDefinitions = 8000;
constexpr size_t kMostWaysOfOne = 1500;  // of one rule: llguidance follows up to 2000 at once
constexpr size_t kMostWaysInAll = 8000;
constexpr double kMostOfTerminal = 100'000;  // parts of a terminal, those of others put in

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

bool is_terminal(std::string_view name) {
  const size_t letter = name.find_first_not_of('_');
  return letter != std::string_view::npos &&
         std::isupper(static_cast<unsigned char>(name[letter])) != 0;
}

/// The object that the text begins with, by its brackets.
std::string_view json_at(std::string_view text) {
  size_t depth = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted && c == '\\') ++i;
    if (is_quoted) continue;
    if (c == '{') ++depth;
    if (c == '}' && (depth -= depth > 0) == 0) return text.substr(0, i + 1);
  }
  return text;
}

/// Reads a source once, by the rules of llguidance's lexer: what it defines, and the size of that.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  Status read();
  const std::vector<std::string_view>& tokens() const { return tokens_; }

 private:
  struct Terminal {
    std::vector<std::string_view> parts;
    double repeats = 1;  // of one of its parts
    double size = 0;     // once known
    bool is_open = false;
  };

  Status step();
  Status name();
  Status bracket(char c);
  Status schema();
  void quoted(char end);
  void token();
  void repetition();
  void begin(std::string_view name);
  double size_of(Terminal& terminal);

  std::string_view rest() const { return source_.substr(at_); }

  const std::string_view source_;
  size_t at_ = 0;
  bool begins_line_ = true;
  size_t depth_ = 0;
  size_t definitions_ = 0;
  size_t alternatives_ = 0;  // in all
  size_t alternatives_of_one_ = 0;
  SchemaLimits schemas_;
  std::map<std::string_view, Terminal> terminals_;
  Terminal* current_ = nullptr;
  std::vector<std::string_view> tokens_;
};

Status Reader::read() {
  while (at_ < source_.size()) {
    if (Status fits = step(); !fits) return fits;
  }
  for (auto& [terminal, made_of] : terminals_) {
    if (size_of(made_of) <= kMostOfTerminal) continue;
    return Error{ErrorCode::kInvalid,
                 fmt::format("the grammar's terminal {} becomes larger than {} parts when the "
                             "terminals that it is made of are put in: make rules of them, whose "
                             "names are in lower case",
                             terminal.substr(0, 80), static_cast<int>(kMostOfTerminal)),
                 "grammar"};
  }
  return {};
}

Status Reader::step() {
  const char c = source_[at_];
  const bool begins_line =
      std::exchange(begins_line_, c == '\n' || (begins_line_ && (c == ' ' || c == '\t')));
  if (c == '#' || rest().starts_with("//")) {
    at_ = std::min(source_.find('\n', at_), source_.size());
  } else if (c == '"' || c == '/') {
    quoted(c);
  } else if (rest().starts_with("%json")) {
    return schema();
  } else if (c == '<') {
    token();
  } else if (is_name(c)) {
    begins_line_ = begins_line;
    return name();
  } else if (c == '|') {
    ++at_;
    if (++alternatives_of_one_ > kMostWaysOfOne) {
      return over("alternatives in one rule", alternatives_of_one_, kMostWaysOfOne);
    }
    if (++alternatives_ > kMostWaysInAll) {
      return over("alternatives", alternatives_, kMostWaysInAll);
    }
  } else if (c == '{' || c == '~') {
    if (Status fits = bracket(c); !fits) return fits;
    repetition();
  } else {
    if (Status fits = bracket(c); !fits) return fits;
    if (begins_line && (c == '?' || c == '!')) begins_line_ = true;
    ++at_;
  }
  return {};
}

Status Reader::bracket(char c) {
  if (c == '(' || c == '[' || c == '{') ++depth_;
  if (c == ')' || c == ']' || c == '}') depth_ -= depth_ > 0;
  return depth_ > kMostDepth ? Status(too_deep(depth_)) : Status();
}

/// A definition's, where a colon follows at a line's beginning.
Status Reader::name() {
  const size_t begin_at = at_;
  while (at_ < source_.size() && is_name(source_[at_])) ++at_;
  const std::string_view name = source_.substr(begin_at, at_ - begin_at);
  const bool begins_line = std::exchange(begins_line_, false);
  size_t next = at_;
  if (begins_line && next < source_.size() && (source_[next] == '[' || source_[next] == '.')) {
    next = std::min(source_.find_first_of(":\n", next), source_.size());  // attributes, a priority
  }
  next = std::min(source_.find_first_not_of(" \t", next), source_.size());
  if (begins_line && next < source_.size() && source_[next] == ':') {
    begin(name);
    if (definitions_ > kMostDefinitions) return over("definitions", definitions_, kMostDefinitions);
  } else if (current_ != nullptr && is_terminal(name)) {
    current_->parts.push_back(name);
  }
  return {};
}

void Reader::begin(std::string_view name) {
  ++definitions_;
  alternatives_of_one_ = 1;
  current_ = is_terminal(name) ? &terminals_[name] : nullptr;
}

/// A string, to its end or the line's, or a pattern.
void Reader::quoted(char end) {
  const size_t begin_at = at_++;
  while (at_ < source_.size() && source_[at_] != end && (end == '/' || source_[at_] != '\n')) {
    at_ += source_[at_] == '\\' ? 2 : 1;
  }
  at_ = std::min(at_ + 1, source_.size());
  if (current_ == nullptr) return;
  const double repeats = repeats_of(source_.substr(begin_at, at_ - begin_at));
  if (end == '/') current_->repeats = std::max(current_->repeats, repeats);
}

/// <…> without a space in it, or a bracket alone.
void Reader::token() {
  const size_t end = source_.find_first_of("<> \t\r\n", at_ + 1);
  const bool is_one = end != std::string_view::npos && source_[end] == '>' && end > at_ + 1;
  if (is_one) tokens_.push_back(source_.substr(at_, end + 1 - at_));
  at_ = is_one ? end + 1 : at_ + 1;
}

/// {n,m} or ~ n..m: its largest number.
void Reader::repetition() {
  double most = 1;
  double number = 0;
  for (++at_; at_ < source_.size(); ++at_) {
    const char c = source_[at_];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      number = number * 10 + (c - '0');
      most = std::max(most, number);
    } else if (c == ',' || c == '.' || c == ' ') {
      number = 0;
    } else {
      break;
    }
  }
  // Counts of one terminal multiply, since it is not known here which stands inside which.
  if (current_ != nullptr) current_->repeats *= most;
}

/// Its schemas stand behind %json.
Status Reader::schema() {
  at_ = std::min(source_.find_first_not_of(" \t\r\n", at_ + 5), source_.size());
  if (at_ == source_.size() || source_[at_] != '{') return {};
  const std::string_view text = json_at(rest());
  at_ += text.size();
  if (Status fits = check_brackets(text); !fits) return fits;
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_structured()) return {};  // the compiler says so
  return schemas_.take(parsed);
}

/// Terminals that are made of themselves the compiler refuses. As deep as there are definitions.
double Reader::size_of(Terminal& terminal) {
  if (terminal.size > 0 || terminal.is_open) return std::max(terminal.size, 1.0);
  terminal.is_open = true;
  double parts = 1;
  for (const std::string_view part : terminal.parts) {
    const auto found = terminals_.find(part);
    if (found != terminals_.end()) parts += size_of(found->second);
  }
  return terminal.size = parts * terminal.repeats;
}

}  // namespace

Status check_lark(std::string_view source) {
  if (repeats_of(source) > kMostRepeats) return too_many_repeats();
  return Reader(source).read();
}

std::vector<std::string_view> tokens_in_lark(std::string_view source) {
  Reader reader(source);
  static_cast<void>(reader.read());
  return reader.tokens();
}

}  // namespace tandem::grammar
