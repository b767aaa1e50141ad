#include "dialect/schema_ways.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tandem::dialect {
namespace {

constexpr int kDeepestUnion = 12;
constexpr size_t kMostWays = 48;
constexpr size_t kMostNodes = 200'000;  // of schemas, as often as they are taken apart

using Names = std::initializer_list<std::string_view>;

/// Values inside of one, and itself, as far as they are asked for.
size_t nodes_of(const Json& value, size_t most) {
  size_t nodes = 1;
  if (!value.is_structured()) return nodes;
  for (const Json& inner : value) {
    if (nodes >= most) break;
    nodes += nodes_of(inner, most - nodes);
  }
  return nodes;
}

bool is_one_of(std::string_view name, Names names) {
  return std::ranges::find(names, name) != names.end();
}

/// Which the grammars of JSON do not bind either.
bool is_never_bound(std::string_view keyword) {
  return is_one_of(keyword, {"not", "if", "then", "else", "uniqueItems", "contains", "minContains",
                             "maxContains", "propertyNames", "dependentRequired",
                             "dependentSchemas", "dependencies", "unevaluatedItems",
                             "unevaluatedProperties", "$dynamicRef", "$recursiveRef"});
}

bool is_bound(std::string_view keyword) { return is_keyword_of(kAnyKind, keyword); }

Kinds kind_of_value(const Json& value) {
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return kBoolean;
  if (value.is_number_integer()) return kInteger;
  if (value.is_number()) return std::trunc(value.get<double>()) == value ? kInteger : kNumber;
  if (value.is_string()) return kString;
  return value.is_array() ? kArray : kObject;
}

/// Code points of UTF-8.
size_t length_of(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_multiple(double value, double of) {
  if (of == 0) return false;
  const double times = value / of;
  return std::abs(times - std::round(times)) < 1e-9;
}

/// Whether a listed value fits a keyword of its kind; `unbound` where that is not looked at.
bool fits(const Json& value, const std::string& name, const Json& bound, std::string& unbound) {
  if (!is_keyword_of(kind_of_value(value), name)) return true;
  if (bound.is_number() && value.is_number()) {
    const auto number = value.get<double>();
    const auto limit = bound.get<double>();
    if (name == "minimum") return number >= limit;
    if (name == "maximum") return number <= limit;
    if (name == "exclusiveMinimum") return number > limit;
    if (name == "exclusiveMaximum") return number < limit;
    if (name == "multipleOf") return is_multiple(number, limit);
  }
  if (bound.is_number() && value.is_string()) {
    const auto length = static_cast<double>(length_of(value.get_ref<const std::string&>()));
    if (name == "minLength") return length >= bound.get<double>();
    if (name == "maxLength") return length <= bound.get<double>();
  }
  unbound = name;
  return true;
}

bool contains(const Json& list, const Json& value) {
  return std::ranges::find(list, value) != list.end();
}

/// Both as one schema.
Json both(const Json& a, const Json& b) {
  if (a == b || b == true) return a;
  if (a == true) return b;
  if (a == false || b == false) return false;
  return {{"allOf", Json::array({a, b})}};
}

Json member_or(const Json& object, const char* name, Json missing) {
  return object.contains(name) ? object[name] : std::move(missing);
}

/// Members that only one of the two names are additional to the other.
void meet_members(Json& into, const Json& more) {
  const Json none = Json::object();
  const Json left = member_or(into, "properties", none);
  const Json right = member_or(more, "properties", none);
  const Json others_left = member_or(into, "additionalProperties", true);
  const Json others_right = member_or(more, "additionalProperties", true);
  Json members = Json::object();
  for (const auto& [name, schema] : left.items()) {
    members[name] = both(schema, right.contains(name) ? right[name] : others_right);
  }
  for (const auto& [name, schema] : right.items()) {
    if (!members.contains(name)) members[name] = both(others_left, schema);
  }
  if (!members.empty()) into["properties"] = std::move(members);
  const Json others = both(others_left, others_right);
  if (others != true) into["additionalProperties"] = others;
}

void add_to_list(Json& into, const Json& more) {
  Json list = into.is_array() ? into : Json::array({into});
  for (const Json& each : more.is_array() ? more : Json::array({more})) {
    if (!contains(list, each)) list.push_back(each);
  }
  into = std::move(list);
}

class Taker {
 public:
  std::vector<Way> take(Schema schema, int depth);
  std::string unbound = {};

 private:
  Way own(const Json& schema);
  std::vector<Way> meet_all(const std::vector<Way>& left, const std::vector<Way>& right);
  std::vector<Way> any_of(Schema schema, const char* keyword, int depth);
  void meet(Json& into, const std::string& name, const Json& value);
  void meet_way(Way& into, const Way& more);
  bool settle(Way& way);
  bool differ(const Way& a, const Way& b) const;
  void join_listed(std::vector<Way>& ways) const;
  void leave_unbound(std::string_view keyword) {
    if (unbound.empty()) unbound = keyword;
  }

  size_t left_ = kMostNodes;
};

Way Taker::own(const Json& schema) {
  Way way;
  const Kinds said = Schema(schema).own_type();
  if (said != 0) way.kinds = said;
  if ((way.kinds & kNumber) != 0) way.kinds |= kInteger;
  if (said != 0 && schema.value("nullable", Json()) == true) way.kinds |= kNull;
  for (const auto& [name, value] : schema.items()) {
    if (is_never_bound(name)) leave_unbound(name);
    if (is_bound(name)) way.keywords[name] = value;
  }
  if (schema.contains("const")) way.keywords["enum"] = Json::array({schema["const"]});
  if (schema.contains("enum") && schema["enum"].is_array()) {
    meet(way.keywords, "enum", schema["enum"]);
  }
  return way;
}

void Taker::meet(Json& into, const std::string& name, const Json& value) {
  if (!into.contains(name)) {
    into[name] = value;
    return;
  }
  Json& mine = into[name];
  if (mine == value) return;
  if (name == "enum") {
    Json common = Json::array();
    for (const Json& each : mine) {
      if (contains(value, each)) common.push_back(each);
    }
    mine = std::move(common);
  } else if (name == "pattern" || name == "format" || name == "required") {
    add_to_list(mine, value);
  } else if (is_one_of(name,
                       {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})) {
    mine = std::max(mine, value);
  } else if (is_one_of(name,
                       {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})) {
    mine = std::min(mine, value);
  } else if (name == "items" && !mine.is_array() && !value.is_array()) {
    mine = both(mine, value);
  } else {
    leave_unbound(name);
  }
}

void Taker::meet_way(Way& into, const Way& more) {
  into.kinds &= more.kinds;
  const auto only_rest = [](const Way& way) {
    return way.keywords.contains("items") && !way.keywords.contains("prefixItems");
  };
  if ((into.kinds & kArray) != 0 && ((into.keywords.contains("prefixItems") && only_rest(more)) ||
                                     (only_rest(into) && more.keywords.contains("prefixItems")))) {
    leave_unbound("prefixItems");
  }
  const auto has_members = [](const Way& way) {
    return way.keywords.contains("properties") || way.keywords.contains("additionalProperties");
  };
  const auto has_patterns = [](const Way& way) {
    return way.keywords.contains("patternProperties");
  };
  if ((has_patterns(into) && has_members(more)) || (has_members(into) && has_patterns(more))) {
    leave_unbound("patternProperties");
  }
  meet_members(into.keywords, more.keywords);
  for (const auto& [name, value] : more.keywords.items()) {
    if (name != "properties" && name != "additionalProperties") meet(into.keywords, name, value);
  }
}

/// Leaves what says something of values of these kinds. False when nothing fits.
bool Taker::settle(Way& way) {
  if (way.is_listed()) {
    Json kept = Json::array();
    Kinds kinds = 0;
    for (const Json& value : way.keywords["enum"]) {
      const Kinds kind = kind_of_value(value);
      bool fit = (way.kinds & kind) != 0;
      std::string unlooked;
      for (const auto& [name, bound] : way.keywords.items()) {
        if (fit && name != "enum") fit = fits(value, name, bound, unlooked);
      }
      if (!fit) continue;
      if (!unlooked.empty()) leave_unbound(unlooked);
      kept.push_back(value);
      kinds |= kind == kNumber ? kNumbers : kind;
    }
    way = {.kinds = kinds, .keywords = {{"enum", std::move(kept)}}};
    return kinds != 0;
  }
  Json kept = Json::object();
  for (const auto& [name, value] : way.keywords.items()) {
    if (is_keyword_of(way.kinds, name)) kept[name] = value;
  }
  way.keywords = std::move(kept);
  return way.kinds != 0;
}

/// Lists become one.
void Taker::join_listed(std::vector<Way>& ways) const {
  Way* first = nullptr;
  for (Way& way : ways) {
    if (!way.is_listed()) continue;
    if (first == nullptr) {
      first = &way;
      continue;
    }
    first->kinds |= way.kinds;
    for (const Json& value : way.keywords["enum"]) {
      if (!contains(first->keywords["enum"], value)) first->keywords["enum"].push_back(value);
    }
    way.kinds = 0;
  }
  std::erase_if(ways, [](const Way& way) { return way.kinds == 0; });
}

std::vector<Way> Taker::meet_all(const std::vector<Way>& left, const std::vector<Way>& right) {
  std::vector<Way> out;
  for (const Way& a : left) {
    for (const Way& b : right) {
      Way way = a;
      meet_way(way, b);
      if (way.kinds != 0) out.push_back(std::move(way));
    }
  }
  return out;
}

/// Whether no value fits both: by type, by listed values, or by those of a member that both
/// require.
bool Taker::differ(const Way& a, const Way& b) const {
  if ((a.kinds & b.kinds) == 0) return true;
  if (a.is_listed() && b.is_listed()) {
    return std::ranges::none_of(
        a.keywords["enum"], [&](const Json& value) { return contains(b.keywords["enum"], value); });
  }
  if ((a.kinds & b.kinds) != kObject || !a.keywords.contains("properties")) return false;
  const auto values_of = [](const Way& way, const std::string& name) {
    const Json required = member_or(way.keywords, "required", Json::array());
    const Json members = member_or(way.keywords, "properties", Json::object());
    if (!contains(required, name) || !members.contains(name)) return Json();
    const Json& member = members[name];
    if (!member.is_object()) return Json();
    if (member.contains("const")) return Json::array({member["const"]});
    return member_or(member, "enum", Json());
  };
  for (const auto& [name, schema] : a.keywords["properties"].items()) {
    const Json left = values_of(a, name);
    const Json right = values_of(b, name);
    if (!left.is_array() || !right.is_array()) continue;
    if (std::ranges::none_of(left, [&](const Json& each) { return contains(right, each); })) {
      return true;
    }
  }
  return false;
}

std::vector<Way> Taker::any_of(Schema schema, const char* keyword, int depth) {
  const bool is_exclusive = std::string_view(keyword) == "oneOf";
  std::vector<Way> all;
  for (const Schema& part : schema.parts_of(keyword)) {
    std::vector<Way> ways = take(part, depth + 1);
    for (Way& way : ways) {
      const auto meets = [&](const Way& other) { return !differ(way, other); };
      if (is_exclusive && std::ranges::any_of(all, meets)) leave_unbound(keyword);
    }
    std::ranges::move(ways, std::back_inserter(all));
    join_listed(all);
    if (all.size() > kMostWays) {
      leave_unbound(keyword);
      break;
    }
  }
  return all;
}

std::vector<Way> Taker::take(Schema schema, int depth) {
  const Json* json = schema.json();
  if (json == nullptr || *json == true) return {Way()};
  if (*json == false) return {};
  if (!json->is_object()) return {Way()};
  const size_t nodes = nodes_of(*json, left_ + 1);
  if (depth > kDeepestUnion || nodes > left_) {
    leave_unbound("$ref");
    return {Way()};
  }
  left_ -= nodes;
  std::vector<Way> ways = {own(*json)};
  if (json->contains("$ref")) {
    const Schema target = schema.target();
    if (target.json() == nullptr) leave_unbound("$ref");
    if (target.json() != nullptr) ways = meet_all(ways, take(target, depth + 1));
  }
  for (const Schema& part : schema.parts_of("allOf")) ways = meet_all(ways, take(part, depth + 1));
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (json->contains(keyword)) ways = meet_all(ways, any_of(schema, keyword, depth));
    if (ways.size() > kMostWays) {
      leave_unbound(keyword);
      ways.resize(kMostWays);
    }
  }
  std::erase_if(ways, [&](Way& way) { return !settle(way); });
  join_listed(ways);
  return ways;
}

}  // namespace

bool is_keyword_of(Kinds kinds, std::string_view keyword) {
  if ((kinds & kString) != 0 &&
      is_one_of(keyword, {"minLength", "maxLength", "pattern", "format"})) {
    return true;
  }
  if ((kinds & kNumbers) != 0 && is_one_of(keyword, {"minimum", "maximum", "exclusiveMinimum",
                                                     "exclusiveMaximum", "multipleOf"})) {
    return true;
  }
  if ((kinds & kArray) != 0 &&
      is_one_of(keyword, {"items", "prefixItems", "additionalItems", "minItems", "maxItems"})) {
    return true;
  }
  return (kinds & kObject) != 0 &&
         is_one_of(keyword, {"properties", "required", "additionalProperties", "patternProperties",
                             "minProperties", "maxProperties"});
}

Json type_list(Kinds kinds) {
  Json list = Json::array();
  if ((kinds & kNull) != 0) list.push_back("null");
  if ((kinds & kBoolean) != 0) list.push_back("boolean");
  if ((kinds & kNumbers) != 0) list.push_back((kinds & kNumber) != 0 ? "number" : "integer");
  if ((kinds & kString) != 0) list.push_back("string");
  if ((kinds & kArray) != 0) list.push_back("array");
  if ((kinds & kObject) != 0) list.push_back("object");
  return list;
}

Kinds Ways::kinds() const {
  Kinds kinds = 0;
  for (const Way& way : list) kinds |= way.kinds;
  return kinds;
}

bool Ways::is_free(Kinds kind) const {
  return std::ranges::any_of(list, [&](const Way& way) {
    if ((way.kinds & kind) != kind || way.is_listed()) return false;
    return std::ranges::none_of(way.keywords.items(),
                                [&](const auto& each) { return is_keyword_of(kind, each.key()); });
  });
}

bool may_fit(const Ways& ways, const Json& value) {
  const Kinds kind = kind_of_value(value);
  return std::ranges::any_of(ways.list, [&](const Way& way) {
    if ((way.kinds & kind) == 0) return false;
    if (way.is_listed()) return contains(way.keywords["enum"], value);
    std::string unlooked;
    return std::ranges::all_of(way.keywords.items(), [&](const auto& each) {
      return fits(value, each.key(), each.value(), unlooked);
    });
  });
}

Ways ways_of(Schema schema) {
  Taker taker;
  Ways ways;
  ways.list = taker.take(schema, 0);
  ways.unbound = std::move(taker.unbound);
  return ways;
}

}  // namespace tandem::dialect
