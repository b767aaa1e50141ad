// Writes the grammar of one answer, rule by rule.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dialect/grammar.h"
#include "dialect/schema_ways.h"
#include "dialect/text_patterns.h"

namespace tandem::dialect {

/// Levels of objects and arrays that are written out.
inline constexpr int kDeepestRule = 6;

/// A name without quotes.
inline constexpr const char* kAnyName = "/[A-Za-z_][A-Za-z0-9_]*/";

/// The text as a part of a pattern.
std::string in_pattern(std::string_view text);

/// Appends rules to one grammar; each method gives an expression for what it is asked for. Used
/// once.
class GrammarWriter {
 public:
  GrammarWriter(const Dialect& dialect, const GrammarRequest& request);

  Result<std::string> write_calls();
  Result<std::string> write_open();
  Result<std::string> write_text(const TextForm& form);

 private:
  using Items = std::vector<std::pair<std::string, bool>>;  // and whether each must be there

  /// What a value must fit, how the parser reads it there, and how deep it stands.
  struct Place {
    Schema schema;
    Schema reader;
    int depth = 0;
  };
  /// A string, or other values that are told from it by how they are written.
  struct TextPlace;
  struct Count {
    uint64_t least = 0;
    uint64_t most = UINT64_MAX;
  };
  /// How members are written: one of a name, and one whose name an expression gives, if it can.
  struct MemberWriter {
    std::string separator;
    std::function<std::string(const std::string& name, Place place)> named;
    std::function<std::string(const std::string& name_text, Place place)> any = {};
  };

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

  Result<std::string> whole(const std::string& start);

  // grammar_values.cpp: what stands in a call.
  bool is_full() const;
  void leave_unbound(std::string_view what);
  const Ways& ways_at(Schema schema);
  Schema schema_of(const Tool& tool);
  std::string arguments(Schema schema);
  std::string parameters(Schema schema);
  std::string parameter(const std::string& key, const std::string& key_text, Place place);
  std::string told_parameter(const std::string& key,
                             const std::string& key_text,
                             Place place,
                             Kinds told);
  std::vector<Kinds> told_apart(Kinds kinds) const;
  std::string sequence(const Items& items, const std::string& separator, Count count);
  std::string free_members(const Way& way, Place place, const MemberWriter& writer);
  std::optional<std::string> members(const Way& way, Place place, const MemberWriter& writer);
  Items named_members(const Way& way, Place place, const MemberWriter& writer, bool& is_possible);

  // grammar_spellings.cpp: values in a spelling.
  std::string json_of(Schema schema, Kinds kinds);
  std::vector<Json> listed(const Ways& ways, Kinds kinds, Schema reader);
  bool reads_untyped_json();
  Kinds read_kinds(Place place, Kinds told) const;
  std::string python_value(Schema schema);
  std::string value_then(Place place, Kinds told, const std::string& close);
  std::string text_then(const TextPlace& text, const std::string& close);
  std::vector<std::string> others(const TextPlace& text);
  std::string string_then(const std::string& body, const std::string& close);
  std::vector<std::string> structures(const Ways& ways, Place place, Kinds kinds);
  std::string elements(const Way& way, Place place, const std::string& between);
  std::string element(Schema schema, Place array);
  std::string gemma_any();
  std::string gemma_value(Place place);
  std::string gemma_object(Schema schema);
  std::optional<std::string> gemma_members(const Way& way, Place place);
  std::optional<std::string> nested_members(const Way& way, Place place);
  std::string nested_element(const std::string& tag, Place place);

  const Dialect& dialect_;
  const Layout& layout_;
  const GrammarRequest& request_;
  std::vector<std::string> literals_;
  std::deque<Json> skeletons_;  // of loose tools
  std::deque<Ways> ways_;       // of which schemas are parts
  const Tool* tool_ = nullptr;  // whose call is being written
  std::optional<bool> reads_untyped_json_;
  std::string unbound_;    // why a strict tool cannot be bound; empty: it can
  std::string any_value_;  // the rule of any value in Gemma's spelling, once there is one
  std::string rules_;
  int count_ = 0;
};

}  // namespace tandem::dialect
