// Values in a dialect's spelling: text between tags, Gemma's own, nested elements.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dialect/grammar_writer.h"
#include "dialect/json_text.h"
#include "dialect/read_back.h"

namespace tandem::dialect {
namespace {

constexpr Kinds kContainers = kArray | kObject;
constexpr Kinds kScalars = kNull | kBoolean | kNumbers;
constexpr std::string_view kTooDeep = "objects or arrays more than six levels deep";
constexpr size_t kMostPrefix = 64;

Kinds kind_among(const Json& value) {
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return kBoolean;
  if (value.is_number()) return kNumbers;
  if (value.is_string()) return kString;
  return value.is_array() ? kArray : kObject;
}

Kinds with_integers(Kinds kinds) {
  return (kinds & kNumber) != 0 ? static_cast<Kinds>(kinds | kInteger) : kinds;
}

std::string one_of(const std::vector<std::string>& all) {
  if (all.size() == 1) return all.front();
  std::string any;
  for (const std::string& each : all) any += (any.empty() ? "" : " | ") + each;
  return "(" + any + ")";
}

/// The first keyword of a way that binds values of the kinds.
std::string bound_by(const Ways& ways, Kinds kinds) {
  for (const Way& way : ways.list) {
    if ((way.kinds & kinds) == 0 || way.is_listed()) continue;
    for (const auto& [name, value] : way.keywords.items()) {
      if (is_keyword_of(kinds, name)) return name;
    }
  }
  return {};
}

/// Whether text that the parser takes for a number is one that fits, whatever it is.
bool are_numbers_free(const Ways& ways, Kinds read) {
  return ways.is_free(kNumber) || (ways.is_free(kInteger) && (read & kNumber) == 0);
}

/// Kinds for which the parser takes text that is none of a string, where not all of the kind fits.
Kinds misread(const Ways& ways, Kinds read) {
  Kinds out = 0;
  for (const Kinds kind : {kNull, kBoolean, kArray, kObject}) {
    if ((read & kind) != 0 && !ways.is_free(kind)) out |= kind;
  }
  if ((read & kNumbers) != 0 && !are_numbers_free(ways, read)) out |= kNumbers;
  return out;
}

}  // namespace

/// A place where any of endless many strings may stand, as text.
struct GrammarWriter::TextPlace {
  const Ways& ways;
  Place place;
  Kinds told;  // 0: the tag does not tell the kind
  Kinds read;  // kinds that the parser may take the text for; 0: any, or none but a string
  Kinds rest;  // kinds of other values that fit and are read
  std::vector<std::string> strings;
};

/// JSON of these kinds that fits the schema.
std::string GrammarWriter::json_of(Schema schema, Kinds kinds) {
  const bool is_bound = schema.json() != nullptr && schema.json()->is_object();
  const Json whole =
      is_bound ? standing_alone(*schema.json(), schema.document()) : Json(Json::object());
  if (kinds == kAnyKind || (is_bound && ways_of(schema).kinds() == kinds)) {
    return json_expression(whole);
  }
  if (whole.empty()) return json_expression({{"type", type_list(kinds)}});
  Json both = {{"allOf", {whole, {{"type", type_list(kinds)}}}}};
  if (whole.contains("$defs")) {
    both["$defs"] = whole["$defs"];
    both["allOf"][0].erase("$defs");
  }
  return json_expression(both);
}

/// Values of these kinds that the schema lists and the parser gives back.
std::vector<Json> GrammarWriter::listed(const Ways& ways, Kinds kinds, Schema reader) {
  std::vector<Json> values;
  const ReadBack back(dialect_, reader);
  for (const Way& way : ways.list) {
    if (!way.is_listed()) continue;
    for (const Json& value : way.keywords["enum"]) {
      if ((kind_among(value) & kinds) == 0) continue;
      if (back.gives(value)) values.push_back(value);
    }
  }
  return values;
}

bool GrammarWriter::reads_untyped_json() {
  if (!reads_untyped_json_) reads_untyped_json_ = ReadBack(dialect_, {}).gives(7);
  return *reads_untyped_json_;
}

Kinds GrammarWriter::read_kinds(Place place, Kinds told) const {
  const Kinds kinds = place.reader.kinds();
  if (told == 0) return with_integers(kinds);
  if (layout_.parameter.find("$type") != std::string::npos || told == kString) return told;
  return kinds == kString ? Kinds(0) : with_integers(kinds);
}

std::string GrammarWriter::python_value(Schema schema) {
  const Ways& ways = ways_at(schema);
  const Kinds kinds = ways.kinds();
  if (kinds == kBoolean && ways.is_free(kBoolean)) return "(\"True\" | \"False\")";
  if (kinds == kNull) return "\"None\"";
  const bool has_words = kinds == kAnyKind && ways.is_free(kBoolean) && ways.is_free(kNull);
  if (has_words) return "(" + json_of(schema, kinds) + " | \"True\" | \"False\" | \"None\")";
  return json_of(schema, kinds);
}

/// A value and what closes it.
std::string GrammarWriter::value_then(Place place, Kinds told, const std::string& close) {
  if (layout_.spelling == Spelling::kPython) {
    return python_value(place.schema) + " " + literal(close);
  }
  if (is_full()) return string_then(kAnyText, close);
  const Ways& ways = ways_at(place.schema);
  const Kinds group = told == 0 ? kAnyKind : told;
  const Kinds read = read_kinds(place, told);
  const bool reads_json = told != 0 || reads_untyped_json();
  const Kinds readable = read != 0 ? read : reads_json ? kAnyKind : kNull;
  TextPlace text{.ways = ways,
                 .place = place,
                 .told = told,
                 .read = read == 0 ? readable : read,
                 .rest = static_cast<Kinds>(ways.kinds() & group & readable & ~kString),
                 .strings = {}};
  for (const Way& way : ways.list) {
    if ((way.kinds & group & kString) == 0 || way.is_listed()) continue;
    std::string unbound;
    text.strings.push_back(string_expression(way, unbound));
    leave_unbound(unbound);
  }
  if (!text.strings.empty()) return text_then(text, close);
  std::vector<std::string> all;
  if ((group & kString) != 0) {
    for (const Json& value : listed(ways, kString, place.reader)) {
      all.push_back(literal(spell(layout_, value)));
      if (all.back().empty()) all.back() = "\"\"";
    }
  }
  for (std::string& other : others(text)) all.push_back(std::move(other));
  if (all.empty()) {
    leave_unbound("enum");
    return string_then(kAnyText, close);
  }
  return one_of(all) + " " + literal(close);
}

/// Values that are no text: JSON, and where they are spelled in another way, structures.
std::vector<std::string> GrammarWriter::others(const TextPlace& text) {
  if (layout_.spelling != Spelling::kNested) {
    if (text.rest == 0) return {};
    return {json_of(text.place.schema, text.rest)};
  }
  std::vector<std::string> all;
  if ((text.rest & kScalars) != 0) {
    all.push_back(json_of(text.place.schema, text.rest & kScalars));
  }
  if ((text.rest & kContainers) == kContainers)
    leave_unbound("a type that allows both arrays and objects");
  for (std::string& each : structures(text.ways, text.place, text.rest & kContainers)) {
    all.push_back(rule(each));
  }
  return all;
}

/// Text, or JSON that is told from it by how it begins. Text that would be read as something that
/// does not fit is left out; what does fit and is read from text is written as such.
std::string GrammarWriter::text_then(const TextPlace& text, const std::string& close) {
  const bool is_any = std::ranges::find(text.strings, kAnyText) != text.strings.end();
  const bool is_nested = layout_.spelling == Spelling::kNested;
  Kinds wrong = text.told == kString ? Kinds(0) : misread(text.ways, text.read);
  // The parser looks whether scalars fit the schema, where it is the one that it knows.
  const Kinds bound_numbers = is_any ? Kinds(0) : Kinds(wrong & text.rest & kNumbers);
  if (text.place.schema.json() == text.place.reader.json()) wrong &= kContainers;
  const Kinds containers = text.rest & kContainers;
  const bool has_containers = containers != 0 && (!is_any || (wrong & containers) != 0);
  if (has_containers) wrong |= containers;
  std::string body = is_any ? kAnyText : one_of(text.strings);
  if (wrong != 0) body += " & ~" + misread_expression(wrong);
  if (has_containers && is_nested) {
    body += fmt::format(" & ~/\\s*({}(?s:.*))?/", in_pattern(layout_.quote));
  }
  const bool is_trimmed = text.told == 0 && text.place.reader.kinds() == 0;
  if (!is_any && is_trimmed) body += " & ~/(\\s(?s:.*)|(?s:.*)\\s|[\"'](?s:.*))/";
  std::vector<std::string> all = {body};
  const bool is_bound = body != kAnyText;
  if (is_bound) {
    const Kinds told = text.told == 0 ? kAnyKind : text.told;
    for (const Json& value : listed(text.ways, told & ~kContainers, text.place.reader)) {
      all.push_back(json_string(spell(layout_, value)));
    }
    const Kinds free = text.rest & kScalars & ~misread(text.ways, text.rest);
    if (const std::string scalars = scalar_expression(free); !scalars.empty() && !is_any) {
      all.push_back(scalars);
    }
    if (bound_numbers != 0) leave_unbound(bound_by(text.ways, kNumbers));
  }
  const std::string words = string_then(all.size() == 1 ? body : one_of(all), close);
  if (!has_containers) return words;
  TextPlace structured = text;
  structured.rest = containers;
  std::string any = rule(words);
  for (const std::string& other : others(structured)) {
    any += " | " + rule(other + " " + literal(close));
  }
  return "(" + any + ")";
}

/// A string as text.
std::string GrammarWriter::string_then(const std::string& body, const std::string& close) {
  if (layout_.spelling != Spelling::kCdata) return text_before(close, body);
  if (body == kAnyText) return "/[^<&\\n]*/ " + literal(close);
  return literal("<![CDATA[") + " " + text_before("]]>", body) + " " + literal(close);
}

/// Objects and arrays of the kinds, as Gemma or nested elements have them.
std::vector<std::string> GrammarWriter::structures(const Ways& ways, Place place, Kinds kinds) {
  std::vector<std::string> all;
  const bool is_gemma = layout_.spelling == Spelling::kGemma;
  if (kinds == 0) return all;
  if (place.depth > kDeepestRule) leave_unbound(kTooDeep);
  if (place.depth > kDeepestRule + 1) return {"\"\""};
  for (const Json& value : listed(ways, kinds, place.reader)) {
    const std::string text = literal(spell(layout_, value));
    all.push_back(text.empty() ? "\"\"" : text);
  }
  for (const Way& way : ways.list) {
    if (way.is_listed()) continue;
    if ((way.kinds & kinds & kArray) != 0) {
      const std::string inside = elements(way, place, is_gemma ? "\",\" " : "");
      all.push_back(is_gemma ? "\"[\" " + inside + " \"]\"" : inside);
    }
    if ((way.kinds & kinds & kObject) != 0) {
      const auto inside = is_gemma ? gemma_members(way, place) : nested_members(way, place);
      if (inside) all.push_back(is_gemma ? "\"{\" " + *inside + " \"}\"" : *inside);
    }
  }
  return all;
}

std::string GrammarWriter::element(Schema schema, Place array) {
  const Place place{.schema = schema, .reader = array.reader.items(), .depth = array.depth + 1};
  return rule(layout_.spelling == Spelling::kGemma ? gemma_value(place)
                                                   : nested_element("item", place));
}

/// The elements of an array: those at the beginning that have schemas of their own, and others.
std::string GrammarWriter::elements(const Way& way, Place place, const std::string& between) {
  const Json& keywords = way.keywords;
  const Json* document = place.schema.document();
  const auto at = [&](const Json& schema) {
    return Schema(document == nullptr ? &schema : document, &schema);
  };
  const char* const first_key =
      keywords.contains("items") && keywords["items"].is_array() ? "items" : "prefixItems";
  const char* const rest_key = std::string_view(first_key) == "items" ? "additionalItems" : "items";
  const size_t first = keywords.contains(first_key) ? keywords[first_key].size() : 0;
  if (first > kMostPrefix) leave_unbound(first_key);
  const size_t prefix = std::min(first, kMostPrefix);
  uint64_t most = count_in(keywords, "maxItems", UINT64_MAX);
  const uint64_t least = count_in(keywords, "minItems", 0);
  const Schema rest = keywords.contains(rest_key) ? at(keywords[rest_key]) : Schema();
  const bool is_nested = layout_.spelling == Spelling::kNested;
  const bool has_rest = rest.json() == nullptr || *rest.json() != false;
  const bool is_deep =
      place.depth >= kDeepestRule && has_rest && (ways_of(rest).kinds() & kContainers) != 0;
  if (!has_rest || (is_deep && least <= prefix)) most = std::min<uint64_t>(most, prefix);
  if (least > most) {
    leave_unbound("minItems");
    return "\"\"";
  }
  std::string tail = "\"\"";
  if (most > prefix) {
    const std::string one = element(rest, place);
    const uint64_t lower = least > prefix ? least - prefix : 0;
    const std::string upper = most == UINT64_MAX ? "" : std::to_string(most - prefix);
    if (prefix > 0) tail = fmt::format("({}{}){{{},{}}}", between, one, lower, upper);
    if (prefix == 0) {
      const std::string more = most == UINT64_MAX ? "" : std::to_string(most - 1);
      tail = most == 1 ? one
                       : fmt::format("{} ({}{}){{{},{}}}", one, between, one,
                                     lower > 0 ? lower - 1 : 0, more);
      if (least == 0) tail = "(" + tail + ")?";
    }
  }
  for (size_t i = std::min<uint64_t>(prefix, most); i-- > 0;) {
    const Schema schema = at(keywords[first_key][i]);
    if (is_nested && (ways_of(schema).kinds() & kContainers) != 0) leave_unbound(first_key);
    const std::string one = (i > 0 ? between : "") + element(schema, place) + " " + rule(tail);
    tail = i >= least ? "(" + one + ")?" : one;
  }
  return tail;
}

std::string GrammarWriter::gemma_any() {
  if (!any_value_.empty()) return any_value_;
  any_value_ = fmt::format("any{}", count_++);
  const std::string pair = rule(std::string(kAnyName) + " \":\" " + any_value_);
  const std::string text = rule(literal(layout_.quote) + " " + text_before(layout_.quote));
  const std::string word = json_expression({{"type", {"number", "boolean", "null"}}});
  rules_ += fmt::format(
      "{0}: {1} | {2} | \"{{\" ({3} (\",\" {3})*)? \"}}\" | \"[\" ({0} (\",\" {0})*)? \"]\"\n",
      any_value_, text, word, pair);
  return any_value_;
}

std::string GrammarWriter::gemma_value(Place place) {
  const Ways& ways = ways_at(place.schema);
  const bool is_any = std::ranges::any_of(
      ways.list, [](const Way& way) { return way.keywords.empty() && way.kinds == kAnyKind; });
  if (is_any || is_full()) return gemma_any();
  std::vector<std::string> strings;
  std::vector<std::string> words;
  for (const Json& value : listed(ways, kString, place.reader)) {
    words.push_back(json_string(value.get<std::string>()));
  }
  for (const Way& way : ways.list) {
    if ((way.kinds & kString) == 0 || way.is_listed()) continue;
    std::string unbound;
    strings.push_back(string_expression(way, unbound));
    leave_unbound(unbound);
  }
  std::vector<std::string> all;
  const std::string quote = literal(layout_.quote) + " ";
  if (strings.empty() && !words.empty()) all.push_back(quote + one_of(words) + " " + quote);
  if (!strings.empty()) {
    const bool is_free = std::ranges::find(strings, kAnyText) != strings.end();
    strings.insert(strings.end(), words.begin(), words.end());
    all.push_back(quote + text_before(layout_.quote, is_free ? kAnyText : one_of(strings)));
  }
  if (const Kinds scalars = ways.kinds() & kScalars; scalars != 0) {
    all.push_back(json_of(place.schema, scalars));
  }
  for (std::string& each : structures(ways, place, ways.kinds() & kContainers)) {
    all.push_back(std::move(each));
  }
  if (all.empty()) leave_unbound("type");
  if (all.empty()) return gemma_any();
  if (all.size() == 1) return all.front();
  for (std::string& each : all) each = rule(each);
  return one_of(all);
}

std::optional<std::string> GrammarWriter::gemma_members(const Way& way, Place place) {
  return members(
      way, place,
      {.separator = ",",
       .named = [&](const std::string& name,
                    Place inner) { return json_string(name + ":") + " " + gemma_value(inner); },
       .any = [&](const std::string& name_text,
                  Place inner) { return name_text + " \":\" " + gemma_value(inner); }});
}

/// All arguments.
std::string GrammarWriter::gemma_object(Schema schema) {
  const Place place{.schema = schema, .reader = schema, .depth = -1};
  const std::vector<std::string> all = structures(ways_at(schema), place, kObject);
  if (all.empty()) leave_unbound("required");
  return all.empty() ? "\"{}\"" : one_of(all);
}

std::string GrammarWriter::nested_element(const std::string& tag, Place place) {
  return literal(layout_.quote + "<" + tag + ">") + " " +
         value_then(place, 0, layout_.quote + "</" + tag + ">");
}

std::optional<std::string> GrammarWriter::nested_members(const Way& way, Place place) {
  auto inside =
      members(way, place, {.separator = {}, .named = [&](const std::string& name, Place inner) {
                             return nested_element(name, inner);
                           }});
  if (inside && inside->empty()) inside = "\"\"";
  return inside;
}

}  // namespace tandem::dialect
