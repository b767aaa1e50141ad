#include "grammar/pattern_limits.h"

#include <algorithm>

#include "grammar/limit_errors.h"

namespace tandem::grammar {
namespace {

/// The upper number of {n}, {n,} or {n,m} at the start of the text; 1 when it is none of these.
double count_of(std::string_view text) {
  const size_t end = text.substr(0, 24).find('}');
  if (end == std::string_view::npos) return 1;
  double numbers[2] = {0, 0};
  size_t at = 0;
  for (const char c : text.substr(1, end - 1)) {
    if (c == ',' && at == 0) {
      ++at;
    } else if (c >= '0' && c <= '9') {
      numbers[at] = numbers[at] * 10 + (c - '0');
    } else {
      return 1;
    }
  }
  return std::max({numbers[0], numbers[1], 1.0});
}

/// How often counted repetitions ({n,m}) repeat a part at most, nested ones multiplied.
class Repeats {
 public:
  double of(std::string_view pattern) {
    text_ = pattern;
    at_ = 0;
    return sequence(0);
  }

 private:
  // Up to the closing bracket of a group.
  double sequence(size_t depth) {
    double most = 1;
    double last = 1;  // of the part before a count
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ')' && depth > 0) break;
      if (c == '{') {
        last *= count_of(text_.substr(at_));
        ++at_;
      } else if (c == '(' && depth < kMostDepth) {
        ++at_;
        last = sequence(depth + 1);
        ++at_;
      } else {
        at_ += c == '\\' ? 2 : 1;
        if (c != '}' && c != ',' && !(c >= '0' && c <= '9')) last = 1;
      }
      most = std::max(most, last);
    }
    return most;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

double repeats_of(std::string_view pattern) { return Repeats().of(pattern); }

Error too_many_repeats() {
  return {ErrorCode::kInvalid,
          fmt::format("the grammar repeats a part of a pattern more than {} times, counts inside "
                      "counts multiplied: repeat less, or without a count",
                      static_cast<int>(kMostRepeats)),
          "grammar"};
}

namespace {

/// ECMA 262, by which JSON schemas write patterns, lets nothing repeat an anchor or a beginning;
/// the compiler would pass over it.
bool repeats_nothing(std::string_view pattern) {
  char before = '(';
  bool is_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool repeats = c == '*' || c == '+' || (c == '?' && (i == 0 || pattern[i - 1] != '('));
    if (!is_class && repeats && std::string_view("^$(|").find(before) != std::string_view::npos) {
      return true;
    }
    before = c;
    if (c == '\\') ++i, before = 'x';
    if (c == '[') is_class = true;
    if (c == ']') is_class = false;
  }
  return false;
}

}  // namespace

Status check_pattern(std::string_view pattern) {
  if (repeats_nothing(pattern)) {
    return Error{ErrorCode::kInvalid, "a pattern of the grammar repeats nothing (such as ^+)",
                 "grammar"};
  }
  if (pattern.size() > kMostPatternBytes) {
    return over("bytes in a pattern", pattern.size(), kMostPatternBytes);
  }
  if (repeats_of(pattern) > kMostRepeats) return too_many_repeats();
  return {};
}

}  // namespace tandem::grammar
