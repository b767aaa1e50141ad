#include "protocol/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tandem::protocol {

using Kind = FieldRule::Kind;

Error broken_rule(const std::string& place, const std::string& rule) {
  return {ErrorCode::kInvalid, fmt::format("'{}' {}", place, rule), place};
}

Fields::Fields(const Json& object, std::string path, FieldLog* log)
    : object_(object), path_(std::move(path)), log_(log) {}

/// Later readers of a field say more of it than any().
void Fields::note(FieldRule rule) {
  if (!log_) return;
  const auto found = std::ranges::find(*log_, rule.name, &FieldRule::name);
  if (found == log_->end()) {
    log_->push_back(std::move(rule));
  } else if (found->kind == Kind::kAny) {
    *found = std::move(rule);
  }
}

void Fields::keep(Error error) {
  if (!error_) error_ = std::move(error);
}

void Fields::refuse(const std::string& name, const std::string& rule) {
  keep(broken_rule(path_ + name, rule));
}

void Fields::refuse_value(const std::string& name, const std::string& rule) {
  refuse(name, fmt::format("{}, not {}", rule, excerpt(object_.at(name))));
}

void Fields::unsupported(const std::string& name, const std::string& what) {
  if (!any(name)) return note({.name = name, .refused = true});
  keep({ErrorCode::kUnsupported,
        fmt::format("'{}{}'{} is not supported yet", path_, name, what.empty() ? "" : " " + what),
        path_ + name});
}

void Fields::accept(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    known_.insert(name);
    note({.name = name, .no_effect = true});
  }
}

const Json* Fields::any(const std::string& name) {
  known_.insert(name);
  note({.name = name});
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::has(const std::string& name) { return any(name) != nullptr; }

std::optional<bool> Fields::boolean(const std::string& name) {
  const Json* value = any(name);
  note({.name = name, .kind = Kind::kBoolean});
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  refuse_value(name, "must be true or false");
  return std::nullopt;
}

std::optional<int64_t> Fields::integer(const std::string& name, int64_t least, int64_t most) {
  const Json* value = any(name);
  note({.name = name, .kind = Kind::kInteger, .least = least, .most = most});
  if (!value) return std::nullopt;
  const bool fits = value->is_number_unsigned()
                        ? value->get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()}
                        : value->is_number_integer();
  if (fits) {
    const auto number = value->get<int64_t>();
    if (number >= least && number <= most) return number;
  }
  refuse_value(name, fmt::format("must be a whole number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<double> Fields::number(const std::string& name, double least, double most) {
  const Json* value = any(name);
  note({.name = name, .kind = Kind::kNumber, .least = least, .most = most});
  if (!value) return std::nullopt;
  if (value->is_number()) {
    const auto number = value->get<double>();
    if (number >= least && number <= most) return number;
  }
  refuse_value(name, fmt::format("must be a number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<std::string> Fields::string(const std::string& name, size_t most_bytes) {
  const Json* value = any(name);
  note({.name = name, .kind = Kind::kString});
  if (!value) return std::nullopt;
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() <= most_bytes) return text;
    refuse(name, fmt::format("must have at most {} bytes, not {}", most_bytes, text.size()));
    return std::nullopt;
  }
  refuse_value(name, "must be a string");
  return std::nullopt;
}

const Json* Fields::object(const std::string& name) {
  const Json* value = any(name);
  note({.name = name, .kind = Kind::kObject});
  if (!value || value->is_object()) return value;
  refuse_value(name, "must be an object");
  return nullptr;
}

const Json* Fields::array(const std::string& name) {
  const Json* value = any(name);
  note({.name = name, .kind = Kind::kArray});
  if (!value || value->is_array()) return value;
  refuse_value(name, "must be an array");
  return nullptr;
}

std::vector<std::string> Fields::unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (!known_.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace tandem::protocol
