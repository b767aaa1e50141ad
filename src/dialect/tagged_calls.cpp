#include "dialect/tagged_calls.h"

#include <utility>

#include "dialect/call_builder.h"
#include "dialect/json_body.h"
#include "dialect/json_text.h"
#include "dialect/value_reader.h"

namespace tandem::dialect {
namespace {

constexpr size_t kLongestTag = 512;

bool is_quote(char c) { return c == '"' || c == '\''; }

std::string resolved(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    constexpr std::string_view kQuote = "&quot;";
    constexpr std::string_view kAnd = "&amp;";
    if (text.substr(i).starts_with(kQuote)) {
      result += '"';
      i += kQuote.size() - 1;
    } else {
      result += text[i];
      if (text.substr(i).starts_with(kAnd)) i += kAnd.size() - 1;
    }
  }
  return result;
}

/// What a tag says of its value's type; 0: nothing. DSML's string="false" is left to the schema.
Kinds said_kinds(const std::string& type) {
  if (type == "string" || type == "true") return kString;
  if (type == "number") return kNumber | kInteger;
  if (type == "integer") return kInteger;
  if (type == "boolean") return kBoolean;
  if (type == "array") return kArray;
  if (type == "object") return kObject;
  if (type == "null") return kNull;
  return 0;
}

}  // namespace

std::string attribute(std::string_view tag, std::string_view name) {
  tag = trimmed(tag);
  size_t at = 0;
  if (!name.empty()) {
    do {
      at = tag.find(name, at);
      if (at == std::string_view::npos) return {};
      const bool is_word_start = at == 0 || is_space(static_cast<unsigned char>(tag[at - 1]));
      at += name.size();
      if (is_word_start && at < tag.size() && tag[at] == '=') break;
    } while (true);
  }
  if (at >= tag.size() || tag[at] != '=') return {};
  std::string_view value = trimmed(tag.substr(at + 1));
  if (!value.empty() && is_quote(value[0])) {
    const size_t close = value.find(value[0], 1);
    if (close == std::string_view::npos) return {};
    return resolved(value.substr(1, close - 1));
  }
  if (!name.empty()) value = value.substr(0, value.find_first_of(" \n\t"));
  return std::string(value);
}

TaggedCalls::TaggedCalls(TaggedCallMarkers markers) : markers_(std::move(markers)) {
  values_ = {.close = markers_.parameter_close,
             .followers = {markers_.parameter_open, markers_.call_close},
             .close_all = markers_.call_close,
             .block_end = markers_.end,
             .has_line_breaks = markers_.has_line_breaks,
             .has_cdata = markers_.has_cdata,
             .untyped = markers_.untyped};
  if (!markers_.end.empty()) values_.followers.push_back(markers_.end);
  ends_ = {markers_.end};
  inside_ = {markers_.parameter_open, markers_.call_close};
  if (!markers_.json_open.empty()) inside_.push_back(markers_.json_open);
}

std::vector<std::string> TaggedCalls::literals() const {
  std::vector<std::string> result = markers_.starts;
  for (const std::string* marker :
       {&markers_.end, &markers_.call_open, &markers_.call_close, &markers_.parameter_open,
        &markers_.parameter_close, &markers_.json_open, &markers_.json_close}) {
    if (!marker->empty()) result.push_back(*marker);
  }
  if (markers_.tag_end.size() > 1) result.push_back(markers_.tag_end);
  return result;
}

Task<Found> TaggedCalls::read(Scope scope) const {
  Found found = Found::kProse;
  bool is_open = !is_block();  // the start marker was the call's own
  while (true) {
    const Input::Mark before(scope.in);
    co_await skip_space(scope.in);
    if (!is_open) is_open = co_await match(scope.in, markers_.call_open);
    if (!is_open) {
      if (found != Found::kCalls) co_return found;
      bool closed = false;
      if (is_block()) closed = co_await match(scope.in, markers_.end);
      if (closed || scope.in.saw_end()) co_return found;
      before.go_back();
      co_return is_block() ? Found::kOpenCalls : found;
    }
    const Found next = co_await read_call(scope);
    if (next != Found::kCalls) {
      if (found != Found::kCalls) co_return next;
      if (next != Found::kOpenCalls) before.go_back();
      co_return Found::kOpenCalls;
    }
    found = next;
    is_open = false;
  }
}

/// From the call's tag on, whose beginning was read.
Task<Found> TaggedCalls::read_call(Scope scope) const {
  std::string tag;
  const bool has_tag = co_await read_until(scope.in, markers_.tag_end, kLongestTag, tag);
  if (!has_tag) co_return Found::kBroken;
  std::string name = attribute(tag, markers_.name_attribute);
  if (name.empty() || name.find('\n') != std::string::npos) co_return Found::kBroken;
  co_await skip_space(scope.in);
  const bool goes_on = co_await looks_at(scope.in, inside_);
  if (!goes_on) co_return Found::kBroken;
  if (!markers_.json_open.empty()) {
    const bool is_json = co_await match(scope.in, markers_.json_open);
    if (is_json) co_return co_await read_json(scope, std::move(name));
  }
  CallBuilder call(scope.out, name, {});
  const Ended ended = co_await read_parameters(scope, name, call);
  call.end(ended == Ended::kWell);
  if (ended != Ended::kBadly) co_return Found::kCalls;
  scope.out.misfit();
  co_return Found::kOpenCalls;
}

Task<TaggedCalls::Ended> TaggedCalls::read_parameters(Scope scope,
                                                      const std::string& tool,
                                                      CallBuilder& call) const {
  while (true) {
    const Input::Mark before(scope.in);
    co_await skip_space(scope.in);
    const bool closed = co_await match(scope.in, markers_.call_close);
    if (closed) co_return Ended::kWell;
    if (scope.in.saw_end()) co_return Ended::kCut;
    if (is_block()) {
      const bool forgot_close = co_await looks_at(scope.in, ends_);
      if (forgot_close) co_return Ended::kWell;
    }
    const bool is_parameter = co_await match(scope.in, markers_.parameter_open);
    bool ok = is_parameter;
    if (ok) ok = co_await read_parameter(scope, tool, call);
    if (ok) continue;
    if (scope.in.saw_end()) co_return Ended::kCut;
    if (!is_parameter) before.go_back();
    co_return Ended::kBadly;
  }
}

Task<bool> TaggedCalls::read_parameter(Scope scope,
                                       const std::string& tool,
                                       CallBuilder& call) const {
  std::string tag;
  const bool has_tag = co_await read_until(scope.in, markers_.tag_end, kLongestTag, tag);
  if (!has_tag) co_return false;
  const std::string key = attribute(tag, markers_.key_attribute);
  if (key.empty()) co_return false;
  Schema schema = scope.tools.parameters(tool).property(key);
  Kinds kinds = schema.kinds();
  TaggedValueStyle values = values_;
  if (!markers_.type_attribute.empty()) {
    const std::string type = attribute(tag, markers_.type_attribute);
    const Kinds said = said_kinds(type);
    if (said != 0) kinds = said;
    schema = {};  // the tag tells strings from others
    if (said == 0 && kinds == kString) kinds = 0;
    values.untyped = Untyped::kJson;
  }
  co_return co_await read_tagged_value(scope.in, values, kinds, schema, call.add(key));
}

/// All arguments as one object, whose tag began.
Task<Found> TaggedCalls::read_json(Scope scope, std::string name) const {
  std::string tag;
  const bool has_tag = co_await read_until(scope.in, markers_.tag_end, kLongestTag, tag);
  if (has_tag) co_await skip_space(scope.in);
  const int c = co_await scope.in.peek();
  if (!has_tag || c != '{') co_return Found::kBroken;
  scope.out.start_call(std::move(name), {});
  ValueReader reader(scope.in, scope.out.arguments(), kJsonStyle);
  const bool ok = co_await reader.value();
  scope.out.end_call(ok);
  if (!ok) {
    if (scope.in.saw_end()) co_return Found::kCalls;
    scope.out.misfit();
    co_return Found::kOpenCalls;
  }
  co_await skip_space(scope.in);
  co_await match(scope.in, markers_.json_close);
  co_await skip_space(scope.in);
  co_await match(scope.in, markers_.call_close);
  co_return Found::kCalls;
}

}  // namespace tandem::dialect
