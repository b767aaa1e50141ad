// What stands in a call: parameters and the members of objects, bound by a tool's schema.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "dialect/grammar_writer.h"
#include "dialect/json_text.h"

namespace tandem::dialect {
namespace {

constexpr size_t kMostSkeleton = 1500;    // schemas of one
constexpr size_t kMostOfRules = 1 << 20;  // bytes: a source of more is not taken

Json member_of(const Json& keywords, const char* name, Json missing) {
  return keywords.contains(name) ? keywords[name] : std::move(missing);
}

/// Whether values of the schema may have others in them.
bool may_nest(Schema schema) { return (ways_of(schema).kinds() & (kArray | kObject)) != 0; }

/// Names and types of a schema, which say how values are written, without what binds them.
Json skeleton(Schema schema, int depth, size_t& left) {
  Json out = Json::object();
  if (left == 0) return out;
  --left;
  const Kinds kinds = schema.kinds();
  if (kinds != 0) out["type"] = type_list(kinds);
  if (depth > kDeepestRule) return out;
  const Schema target = schema.target();
  const bool has_members = target.json() != nullptr && target.json()->is_object() &&
                           target.json()->contains("properties") &&
                           (*target.json())["properties"].is_object();
  if (has_members) {
    for (const auto& [name, inner] : (*target.json())["properties"].items()) {
      out["properties"][name] = skeleton(target.property(name), depth + 1, left);
    }
  }
  if ((kinds & kArray) != 0) {
    if (const Schema items = schema.items(); items.json() != nullptr) {
      out["items"] = skeleton(items, depth + 1, left);
    }
  }
  return out;
}

}  // namespace

/// What binds the arguments. Of a loose tool nothing does, but where the spelling of a value
/// depends on its type, or on what its members are called, these are needed to write any.
Schema GrammarWriter::schema_of(const Tool& tool) {
  if (!tool.parameters.is_object()) return {};
  if (!tool.loose) return Schema(tool.parameters);
  const bool has_types = layout_.parameter.find("$type") != std::string::npos ||
                         layout_.parameter.find("$string") != std::string::npos;
  const bool needs_types =
      has_types || layout_.spelling == Spelling::kGemma || layout_.spelling == Spelling::kNested;
  if (!needs_types) return {};
  size_t left = kMostSkeleton;
  skeletons_.push_back(skeleton(Schema(tool.parameters), 0, left));
  return Schema(skeletons_.back());
}

/// Schemas that refer to themselves are written out to a depth, which may be without end: what
/// comes behind so much is never read.
bool GrammarWriter::is_full() const { return rules_.size() > kMostOfRules; }

/// What a schema has of this binds nothing, which a strict tool does not bear.
void GrammarWriter::leave_unbound(std::string_view what) {
  if (what.empty() || tool_ == nullptr || !tool_->strict || !unbound_.empty()) return;
  unbound_ = fmt::format(
      "the strict tool \"{}\" has {} in its schema, to which calls of the dialect {} cannot be "
      "held "
      "there: leave it out, or let the tool not be strict",
      tool_->name.substr(0, 80), what, dialect_.name);
}

const Ways& GrammarWriter::ways_at(Schema schema) {
  ways_.push_back(ways_of(schema));
  leave_unbound(ways_.back().unbound);
  return ways_.back();
}

std::string GrammarWriter::arguments(Schema schema) {
  if (layout_.spelling == Spelling::kGemma) return gemma_object(schema);
  if (schema.json() == nullptr) return json_expression(Json{{"type", "object"}});
  return json_expression(standing_alone(*schema.json(), schema.document()));
}

/// Items with a separator between them; those that are not required may be left out, as far as
/// the count of all goes.
std::string GrammarWriter::sequence(const Items& items, const std::string& separator, Count count) {
  const std::string between = separator.empty() ? "" : literal(separator) + " ";
  std::string required;
  std::string optional;
  std::string any;
  std::string any_optional;
  uint64_t there = 0;
  for (const auto& [item, is_required] : items) {
    any += (any.empty() ? "" : " | ") + item;
    there += is_required ? 1 : 0;
    if (is_required) required += (required.empty() ? "" : between) + item + " ";
    if (!is_required) any_optional += (any_optional.empty() ? "" : " | ") + item;
    if (!is_required) optional += "(" + between + item + ")? ";
  }
  if (any.empty()) return {};
  const uint64_t least = count.least > there ? count.least - there : 0;
  const uint64_t most = std::min<uint64_t>(count.most, items.size()) - there;
  const bool is_counted = least > 0 || most < items.size() - there;
  if (!is_counted && (there > 0 || between.empty())) return required + optional;
  if (is_counted && any_optional.empty()) return required;
  const std::string one = rule(is_counted ? any_optional : any);
  // A name may come again, so that no more than one can be asked for.
  if (there > 0) {
    return most == 0 ? required
                     : fmt::format("{}({}{}){{{},{}}}", required, between, one, least, most);
  }
  if (most == 0) return {};
  const std::string more = is_counted ? fmt::format("{{0,{}}}", most - 1) : "*";
  const std::string all =
      is_counted && most == 1 ? one : fmt::format("{} ({}{}){}", one, between, one, more);
  return least > 0 ? all : "(" + all + ")?";
}

/// Those that the schema names, or that it only requires.
GrammarWriter::Items GrammarWriter::named_members(const Way& way,
                                                  Place place,
                                                  const MemberWriter& writer,
                                                  bool& is_possible) {
  Items items;
  const Json* document = place.schema.document();
  const Json required = member_of(way.keywords, "required", Json::array());
  const auto is_required = [&](const Json& name) {
    return std::ranges::find(required, name) != required.end();
  };
  const auto add = [&](const std::string& name, const Json* schema, bool must) {
    if (*schema == false) {
      is_possible &= !must;
      return;
    }
    const Schema of(document == nullptr ? schema : document, schema);
    if (!must && place.depth >= kDeepestRule && may_nest(of)) return;
    items.emplace_back(
        rule(writer.named(
            name, {.schema = of, .reader = place.reader.property(name), .depth = place.depth + 1})),
        must);
  };
  if (way.keywords.contains("properties")) {
    for (const auto& [name, schema] : way.keywords["properties"].items()) {
      add(name, &schema, is_required(name));
    }
  }
  skeletons_.push_back(member_of(way.keywords, "additionalProperties", true));
  const Json* others = &skeletons_.back();
  for (const Json& name : required) {
    const bool is_named = way.keywords.contains("properties") && name.is_string() &&
                          way.keywords["properties"].contains(name.get_ref<const std::string&>());
    if (name.is_string() && !is_named) add(name.get<std::string>(), others, true);
  }
  return items;
}

/// Members of an object that names none.
std::string GrammarWriter::free_members(const Way& way, Place place, const MemberWriter& writer) {
  const uint64_t least = count_in(way.keywords, "minProperties", 0);
  const uint64_t most = count_in(way.keywords, "maxProperties", UINT64_MAX);
  const Json patterns = member_of(way.keywords, "patternProperties", Json::object());
  skeletons_.push_back(member_of(way.keywords, "additionalProperties", true));
  std::string name_text = kAnyName;
  if (!patterns.empty()) {
    const auto found = search_expression(patterns.begin().key());
    const bool is_bound = found && patterns.size() == 1 && layout_.spelling == Spelling::kGemma;
    if (!is_bound) leave_unbound("patternProperties");
    if (is_bound) {
      name_text = fmt::format("R{}", count_++);
      rules_ += fmt::format("{}: {} & {}\n", name_text, kAnyName, *found);
      skeletons_.back() = patterns.begin().value();
    }
  }
  const Json* others = &skeletons_.back();
  const Json* document = place.schema.document();
  const Schema of =
      *others == true ? Schema() : Schema(document == nullptr ? others : document, others);
  const bool is_deep = *others != true && place.depth >= kDeepestRule && may_nest(of);
  const bool has_none = *others == false || most == 0 || !writer.any || is_deep;
  if (least > (has_none ? 0 : 1)) leave_unbound("minProperties");
  if (has_none) return {};
  const Place inner{.schema = of, .reader = of, .depth = place.depth + 1};
  const std::string one = rule(writer.any(name_text, inner));
  const std::string between = literal(writer.separator);
  const std::string upper = most == UINT64_MAX ? "" : std::to_string(most - 1);
  const std::string all =
      most == 1 ? one : fmt::format("{} ({} {}){{0,{}}}", one, between, one, upper);
  return least > 0 ? all : "(" + all + ")?";
}

/// Nothing where no object fits.
std::optional<std::string> GrammarWriter::members(const Way& way,
                                                  Place place,
                                                  const MemberWriter& writer) {
  bool is_possible = true;
  const Items items = named_members(way, place, writer, is_possible);
  const Count count = {.least = count_in(way.keywords, "minProperties", 0),
                       .most = count_in(way.keywords, "maxProperties", UINT64_MAX)};
  const auto there = static_cast<uint64_t>(
      std::ranges::count_if(items, [](const auto& item) { return item.second; }));
  if (!is_possible || count.most < there) return std::nullopt;
  if (items.empty()) return free_members(way, place, writer);
  if (way.keywords.contains("patternProperties")) leave_unbound("patternProperties");
  const uint64_t asked = count.least > there ? count.least - there : 0;
  if (asked > std::min<uint64_t>(1, items.size() - there)) leave_unbound("minProperties");
  return sequence(items, writer.separator, count);
}

std::string GrammarWriter::parameters(Schema schema) {
  const Ways& ways = ways_at(schema);
  const bool is_nested = layout_.spelling == Spelling::kNested;
  MemberWriter writer{
      .separator = layout_.between_parameters,
      .named = [&](const std::string& name, Place place) { return parameter(name, {}, place); }};
  if (!is_nested) {
    writer.any = [&](const std::string& name_text, Place place) {
      return parameter({}, name_text, place);
    };
  }
  std::vector<std::string> all;
  for (const Way& way : ways.list) {
    if ((way.kinds & kObject) == 0) continue;
    if (way.is_listed()) leave_unbound("enum");
    auto one = members(way, {.schema = schema, .reader = schema, .depth = -1}, writer);
    if (one) all.push_back(one->empty() ? "\"\"" : std::move(*one));
  }
  if (all.empty()) leave_unbound("required");
  if (all.size() == 1) return all.front();
  std::string any;
  for (const std::string& one : all) any += (any.empty() ? "" : " | ") + rule(one);
  return any.empty() ? any : "(" + any + ")";
}

/// Of kinds that the layout tells one from another: each by itself. 0: it tells none.
std::vector<Kinds> GrammarWriter::told_apart(Kinds kinds) const {
  std::vector<Kinds> groups;
  const auto add = [&](Kinds group) {
    if ((kinds & group) != 0) groups.push_back(group);
  };
  if (layout_.parameter.find("$type") != std::string::npos) {
    for (const Kinds group : {kString, kNumbers, kBoolean, kObject, kArray, kNull}) add(group);
  } else if (layout_.parameter.find("$string") != std::string::npos) {
    add(kString);
    add(static_cast<Kinds>(kAnyKind & ~kString));
  } else {
    groups.push_back(0);
  }
  return groups;
}

/// `key_text`: an expression for the key, where it is not known.
std::string GrammarWriter::parameter(const std::string& key,
                                     const std::string& key_text,
                                     Place place) {
  const std::vector<Kinds> groups = told_apart(ways_of(place.schema).kinds());
  if (groups.size() == 1) return told_parameter(key, key_text, place, groups.front());
  std::string any;
  for (const Kinds told : groups) {
    any += (any.empty() ? "" : " | ") + rule(told_parameter(key, key_text, place, told));
  }
  return any;
}

std::string GrammarWriter::told_parameter(const std::string& key,
                                          const std::string& key_text,
                                          Place place,
                                          Kinds told) {
  const size_t value_at = layout_.parameter.find("$value");
  std::string result;
  std::string plain;
  const auto add = [&](std::string_view field) {
    if (field == "key" && !key_text.empty()) {
      if (!plain.empty()) result += literal(std::exchange(plain, {})) + " ";
      result += key_text + " ";
    }
    if (field == "key") plain += key;
    if (field == "string") plain += told == kString ? "true" : "false";
    if (field == "type") plain += type_name(told);
  };
  walk(
      std::string_view(layout_.parameter).substr(0, value_at),
      [&](std::string_view piece) { plain += piece; }, add);
  if (!plain.empty()) result += literal(std::exchange(plain, {})) + " ";
  walk(
      std::string_view(layout_.parameter).substr(value_at + 6),
      [&](std::string_view piece) { plain += piece; },
      [&](std::string_view field) {
        if (field == "key") plain += key;
      });
  return result + value_then(place, told, plain);
}

}  // namespace tandem::dialect
