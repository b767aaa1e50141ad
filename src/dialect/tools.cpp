#include "dialect/tools.h"

#include <algorithm>
#include <utility>

namespace tandem::dialect {
namespace {

constexpr int kDeepestSchema = 16;

/// The value of a member, null when there is none.
const Json* member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

Kinds kind_named(std::string_view name) {
  if (name == "null") return kNull;
  if (name == "boolean" || name == "bool") return kBoolean;
  if (name == "integer" || name == "int") return kInteger;
  if (name == "number" || name == "float") return kNumber;
  if (name == "string" || name == "str") return kString;
  if (name == "array" || name == "list") return kArray;
  if (name == "object" || name == "dict") return kObject;
  return 0;
}

Kinds kind_of(const Json& value) {
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return kBoolean;
  if (value.is_number_integer()) return kInteger;
  if (value.is_number()) return kNumber;
  if (value.is_string()) return kString;
  return value.is_array() ? kArray : kObject;
}

Kinds kinds_of_type(const Json& schema) {
  Kinds kinds = 0;
  const Json* type = member(schema, "type");
  if (type != nullptr && type->is_string()) kinds = kind_named(type->get<std::string>());
  if (type != nullptr && type->is_array()) {
    for (const Json& name : *type) {
      if (name.is_string()) kinds |= kind_named(name.get<std::string>());
    }
  }
  return kinds;
}

/// What one schema object says itself.
Kinds own_kinds(const Json& schema) {
  Kinds kinds = kinds_of_type(schema);
  const Json* values = member(schema, "enum");
  if (kinds == 0 && values != nullptr && values->is_array()) {
    for (const Json& value : *values) kinds |= kind_of(value);
  }
  if (const Json* value = member(schema, "const"); kinds == 0 && value != nullptr) {
    kinds = kind_of(*value);
  }
  const Json* nullable = member(schema, "nullable");
  if (kinds != 0 && nullable != nullptr && *nullable == true) kinds |= kNull;
  return kinds;
}

}  // namespace

const char* type_name(Kinds kinds) {
  if ((kinds & kString) != 0) return "string";
  if ((kinds & (kInteger | kNumber)) != 0) return "number";
  if ((kinds & kBoolean) != 0) return "boolean";
  if ((kinds & kArray) != 0) return "array";
  if ((kinds & kObject) != 0) return "object";
  return (kinds & kNull) != 0 ? "null" : "";
}

Schema Schema::target() const {
  Schema place = *this;
  for (int i = 0; i < kDeepestSchema && place.at_ != nullptr; ++i) {
    const Json* reference = member(*place.at_, "$ref");
    if (reference == nullptr || !reference->is_string()) return place;
    const auto path = reference->get<std::string>();
    if (path.empty() || path[0] != '#') return {};
    const auto pointer = path.substr(1);
    if (!pointer.empty() && pointer[0] != '/') return {};
    try {
      const Json::json_pointer where(pointer);
      if (!document_->contains(where)) return {};
      place.at_ = &document_->at(where);
    } catch (const Json::exception&) {
      return {};
    }
  }
  return {};
}

Kinds Schema::own_type() const { return at_ == nullptr ? Kinds(0) : kinds_of_type(*at_); }

std::vector<Schema> Schema::parts_of(const char* keyword) const {
  std::vector<Schema> out;
  const Json* list = at_ == nullptr ? nullptr : member(*at_, keyword);
  if (list == nullptr || !list->is_array()) return out;
  for (const Json& part : *list) out.push_back(Schema(document_, &part));
  return out;
}

/// This schema, and those that it is made of.
std::vector<Schema> Schema::parts(int depth) const {
  const Schema self = target();
  if (self.at_ == nullptr || depth > kDeepestSchema) return {};
  std::vector<Schema> result = {self};
  for (const char* word : {"anyOf", "oneOf", "allOf"}) {
    const Json* list = member(*self.at_, word);
    if (list == nullptr || !list->is_array()) continue;
    for (const Json& part : *list) {
      const auto inner = Schema(document_, &part).parts(depth + 1);
      result.insert(result.end(), inner.begin(), inner.end());
      if (result.size() > 256) return result;
    }
  }
  return result;
}

Kinds Schema::kinds() const {
  if (at_ == nullptr) return 0;
  Kinds kinds = 0;
  for (const Schema& part : parts(0)) kinds |= own_kinds(*part.at_);
  return kinds;
}

Schema Schema::property(std::string_view name) const {
  if (at_ == nullptr) return {};
  const auto all = parts(0);
  for (const Schema& part : all) {
    const Json* properties = member(*part.at_, "properties");
    const Json* found = properties == nullptr ? nullptr : member(*properties, name);
    if (found != nullptr) return {document_, found};
  }
  for (const Schema& part : all) {
    const Json* others = member(*part.at_, "additionalProperties");
    if (others != nullptr && others->is_object()) return {document_, others};
  }
  return {};
}

Schema Schema::items() const {
  if (at_ == nullptr) return {};
  for (const Schema& part : parts(0)) {
    const Json* items = member(*part.at_, "items");
    if (items != nullptr && items->is_object()) return {document_, items};
  }
  return {};
}

Tools::Tools(const Json& list) {
  if (!list.is_array()) return;
  for (const Json& entry : list) {
    const Json* inner = member(entry, "function");
    const Json& function = inner == nullptr ? entry : *inner;
    const Json* name = member(function, "name");
    if (name == nullptr || !name->is_string()) continue;
    const Json* parameters = member(function, "parameters");
    const Json* strict = member(function, "strict");
    list_.push_back({.name = name->get<std::string>(),
                     .parameters = parameters == nullptr ? Json() : *parameters,
                     .strict = strict != nullptr && *strict == true});
  }
}

Tools Tools::loosened() const {
  Tools loose = *this;
  for (Tool& tool : loose.list_) {
    tool.loose = !tool.strict;
  }
  return loose;
}

const Tool* Tools::find(std::string_view name) const {
  const auto found = std::ranges::find(list_, name, &Tool::name);
  return found == list_.end() ? nullptr : &*found;
}

Schema Tools::parameters(std::string_view name) const {
  const Tool* tool = find(name);
  if (tool == nullptr || !tool->parameters.is_object()) return {};
  return Schema(tool->parameters);
}

}  // namespace tandem::dialect
