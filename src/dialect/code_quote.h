// Knows whether Markdown text stands inside code, where markers are quoted and mean nothing.
#pragma once

#include <cstddef>

namespace tandem::dialect {

/// Follows text byte by byte: fences (``` at the start of a line, to the next such line), and a
/// backtick or quotation mark right in front.
class CodeQuote {
 public:
  void put(char byte);

  /// What would come next is quoted.
  bool is_inside() const { return fence_ > 0 || run_ > 0; }

  /// The last byte was a quotation mark or an opening bracket.
  bool is_after_quote() const;

 private:
  void end_run(char next);

  size_t fence_ = 0;   // backticks of the fence that is open
  size_t run_ = 0;     // backticks read in a row
  size_t indent_ = 0;  // spaces at the start of the line, kNoIndent once there is more
  bool run_starts_line_ = false;
  char last_ = '\n';
};

}  // namespace tandem::dialect
