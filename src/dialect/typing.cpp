#include "dialect/typing.h"

#include <algorithm>
#include <array>
#include <optional>

#include "dialect/json_text.h"
#include "dialect/schema_ways.h"
#include "dialect/value_reader.h"

namespace tandem::dialect {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// An integer that may be written with a fraction of zeros.
std::optional<std::string> integer(std::string_view text) {
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  if (!is_json_integer(whole)) return std::nullopt;
  if (point == std::string_view::npos) return std::string(whole);
  const std::string_view fraction = text.substr(point + 1);
  if (fraction.empty() || fraction.find_first_not_of('0') != std::string_view::npos) {
    return std::nullopt;
  }
  return std::string(whole);
}

/// What no double holds stays text where a string may stand.
std::optional<std::string> number_of(std::string_view text, Kinds kinds) {
  std::optional<std::string> number;
  if ((kinds & kInteger) != 0) number = integer(text);
  if (!number && (kinds & kNumber) != 0 && is_json_number(text)) number = text;
  if (!number) return std::nullopt;
  if ((kinds & kString) != 0 && !is_in_range(*number)) return std::nullopt;
  return json_number(*number);
}

/// Words other than "true" and "false" only where nothing else could be meant.
std::optional<std::string> boolean(std::string_view text, Kinds kinds) {
  const std::string word = lower(text);
  if (word == "true" || word == "false") return word;
  if ((kinds & (kString | kInteger | kNumber)) != 0) return std::nullopt;
  constexpr std::array kYes = {"yes", "on", "1"};
  constexpr std::array kNo = {"no", "off", "0"};
  if (std::ranges::find(kYes, word) != kYes.end()) return "true";
  if (std::ranges::find(kNo, word) != kNo.end()) return "false";
  return std::nullopt;
}

std::optional<std::string> container(std::string_view text, Kinds kinds) {
  const bool may_be = (text.starts_with('{') && (kinds & kObject) != 0) ||
                      (text.starts_with('[') && (kinds & kArray) != 0);
  if (!may_be) return std::nullopt;
  std::string json = read_whole(text, kPythonStyle);
  if (json.empty()) return std::nullopt;
  return json;
}

std::string of_unknown_type(std::string_view text, Untyped untyped) {
  const std::string_view word = trimmed(text);
  if (lower(word) == "null") return "null";
  if (untyped == Untyped::kText) return json_string(text);
  if (word == "None") return "null";
  if (word == "true" || word == "True") return "true";
  if (word == "false" || word == "False") return "false";
  if (is_json_number(word)) return json_number(word);
  if (const auto json = container(word, kObject | kArray)) return *json;
  if (word.size() > 1 && word.front() == word.back() && (word[0] == '"' || word[0] == '\'')) {
    std::string json = read_whole(word, kJsonStyle);
    if (!json.empty()) return json;
  }
  return json_string(word);
}

}  // namespace

std::string typed(std::string_view text, Kinds kinds, Untyped untyped) {
  if (kinds == 0) return of_unknown_type(text, untyped);
  if (kinds == kString) return json_string(text);
  const std::string_view word = trimmed(text);
  if ((kinds & kNull) != 0) {
    const std::string name = lower(word);
    if (name == "null" || name == "none" || name == "nil") return "null";
  }
  if (const auto number = number_of(word, kinds)) return *number;
  if ((kinds & kBoolean) != 0) {
    if (const auto word_of = boolean(word, kinds)) return *word_of;
  }
  if (const auto json = container(word, kinds)) return *json;
  return json_string(text);
}

std::string typed_by(Schema schema, std::string_view text, Kinds kinds, Untyped untyped) {
  std::string json = typed(text, kinds, untyped);
  const bool may_be_text = kinds == 0 || (kinds & kString) != 0;
  if (schema.json() == nullptr || !may_be_text || json.starts_with('"')) return json;
  const Json value = Json::parse(json, nullptr, false);
  const Ways ways = ways_of(schema);
  if (value.is_structured() || may_fit(ways, value)) return json;
  std::string string = json_string(text);
  const Json as_text = Json::parse(string, nullptr, false);
  return may_fit(ways, as_text) ? string : json;
}

}  // namespace tandem::dialect
