#include "dialect/code_quote.h"

#include <string_view>

namespace tandem::dialect {
namespace {

constexpr size_t kNoIndent = 4;  // as much is no fence

}  // namespace

void CodeQuote::put(char byte) {
  last_ = byte;
  if (byte == '`') {
    if (run_ == 0) run_starts_line_ = indent_ < kNoIndent;
    ++run_;
    indent_ = kNoIndent;
    return;
  }
  if (run_ > 0) end_run(byte);
  if (byte == '\n') {
    indent_ = 0;
  } else if (byte != ' ' || ++indent_ > kNoIndent) {
    indent_ = kNoIndent;
  }
}

void CodeQuote::end_run(char next) {
  if (run_ >= 3 && run_starts_line_) {
    const bool is_bare = next == '\n' || next == '\r' || next == ' ';
    if (fence_ == 0) {
      fence_ = run_;
    } else if (run_ >= fence_ && is_bare) {
      fence_ = 0;
    }
  }
  run_ = 0;
}

bool CodeQuote::is_after_quote() const {
  return std::string_view("\"'`(").find(last_) != std::string_view::npos;
}

}  // namespace tandem::dialect
