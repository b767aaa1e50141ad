// Writes the grammar of one answer, rule by rule.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dialect/grammar.h"

namespace tandem::dialect {

/// Text of any length, line breaks included.
inline constexpr const char* kAnyText = "/(?s:.*)/";

/// The text as a part of a pattern.
std::string in_pattern(std::string_view text);

/// Appends rules to one grammar; each method gives an expression for what it is asked for. Used
/// once.
class GrammarWriter {
 public:
  GrammarWriter(const Dialect& dialect, const GrammarRequest& request);

  std::string write_calls();
  std::string write_open();
  std::string write_text(const TextForm& form);

 private:
  using Items = std::vector<std::pair<std::string, bool>>;  // and whether each must be there

  // grammar.cpp: what an answer is made of.
  std::string_view token_at(std::string_view text) const;
  std::string literal(std::string_view text) const;
  std::string rule(const std::string& body);
  std::string text_before(const std::string& close,
                          const std::string& body = kAnyText,
                          const std::string& without = {});
  std::string thinking(const std::string& space);
  bool is_shown(const Tool& tool) const;
  std::string any_call(size_t skipped);
  std::string calls(size_t skipped);
  std::string call(const Tool& tool, std::string_view pattern);
  std::string id(const Tool& tool) const;
  std::string text_or_call(const TextForm& form);
  std::string without_starts(const std::vector<std::string>& starts) const;
  std::string open_behind_marker();
  std::string open_from_start();
  std::string spaced_call(const Tool& tool);
  std::string open_messages();

  // grammar_values.cpp: what stands in a call.
  bool is_full() const;
  std::string arguments(Schema schema);
  Schema schema_of(const Tool& tool);
  std::string parameters(Schema schema);
  std::string any_parameter(const std::string& key, const std::string& key_text);
  std::string parameter(const std::string& key, const std::string& key_text, Schema schema);
  std::string sequence(const Items& items, const std::string& separator);
  std::string value_then(Schema schema, const std::string& close, int depth);
  bool tells_type() const;
  std::string told_value(Schema schema) const;
  std::string string_then(Schema schema, const std::string& close);
  std::string gemma_any();
  std::string gemma_value(Schema schema, int depth);
  std::string gemma_object(Schema schema, int depth);
  std::string nested_value(Schema schema, int depth);

  const Dialect& dialect_;
  const Layout& layout_;
  const GrammarRequest& request_;
  std::vector<std::string> literals_;
  std::deque<Json> skeletons_;  // of loose tools
  std::string any_value_;       // the rule of any value in Gemma's spelling, once there is one
  std::string rules_;
  int count_ = 0;
};

}  // namespace tandem::dialect
