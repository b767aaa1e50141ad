#include "dialect/json_body.h"

#include <algorithm>
#include <array>
#include <utility>

#include "dialect/json_text.h"
#include "dialect/value_reader.h"

namespace tandem::dialect {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::array<std::string_view, 4> kNameKeys = {"name", "function", "tool_name", "tool"};

bool is_name_key(std::string_view key) {
  return std::ranges::find(kNameKeys, key) != kNameKeys.end();
}

bool is_arguments_key(std::string_view key) {
  return is_one_of(key, {"arguments", "parameters", "args"});
}

/// Not "tool_call_id" of Cohere, which counts anew in each turn.
bool is_id_key(std::string_view key) { return is_one_of(key, {"id", "call_id"}); }

/// The text of a JSON string; empty for other values.
std::string text_of(const std::string& json) {
  const Json value = Json::parse(json, nullptr, false);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace

struct JsonBody::Call {
  std::string name = {};
  std::string id = {};
  std::string arguments = {};  // JSON, read before the name was known
  bool is_started = false;
  bool is_whole = false;  // its arguments were put out
};

std::optional<std::string> arguments_object(const std::string& json) {
  if (json.empty() || json == "null") return "{}";
  if (json.starts_with('{')) return json;
  if (!json.starts_with('"')) return std::nullopt;
  std::string inner = read_whole(text_of(json), kPythonStyle);
  if (!inner.starts_with('{')) return std::nullopt;
  return inner;
}

std::vector<std::string> JsonBody::bare_name_keys() const {
  if (!markers_.bare) return {};
  return {kNameKeys.begin(), kNameKeys.end()};
}

std::vector<std::string> JsonBody::literals() const {
  std::vector<std::string> result = markers_.starts;
  if (!markers_.end.empty()) result.push_back(markers_.end);
  return result;
}

Task<Found> JsonBody::read(Scope scope) const {
  const uint32_t before = scope.out.calls();
  const Found found = co_await read_list(scope);
  if (found != Found::kCalls) {
    const bool has_calls = scope.out.calls() > before;
    co_return has_calls ? Found::kOpenCalls : found;
  }
  if (markers_.end.empty()) co_return found;
  const Input::Mark after(scope.in);
  while (true) {
    co_await skip_space(scope.in);
    const bool stray = co_await match(scope.in, "}");
    if (!stray) break;
  }
  const bool closed = co_await match(scope.in, markers_.end);
  if (closed || scope.in.saw_end()) co_return Found::kCalls;
  after.go_back();
  co_return Found::kOpenCalls;
}

/// One object after another, in brackets or not.
Task<Found> JsonBody::read_list(Scope scope) const {
  Found found = Found::kProse;
  co_await skip_space(scope.in);
  const bool has_brackets = co_await match(scope.in, "[");
  while (true) {
    const Input::Mark before(scope.in);
    co_await skip_space(scope.in);
    if (found == Found::kCalls) {
      const int c = co_await scope.in.peek();
      if (c == ',' || c == ';') scope.in.skip();
      co_await skip_space(scope.in);
    }
    const bool is_object = co_await match(scope.in, "{");
    if (!is_object) {
      if (!has_brackets) before.go_back();
      if (has_brackets) co_await match(scope.in, "]");
      co_return has_brackets&& found == Found::kProse ? Found::kBroken : found;
    }
    const Found next = co_await read_call(scope);
    if (next != Found::kCalls) {
      if (found == Found::kCalls && next != Found::kOpenCalls) before.go_back();
      co_return next;
    }
    found = next;
  }
}

/// An object, whose '{' was read.
Task<Found> JsonBody::read_call(Scope scope) const {
  Call call;
  const bool ok = co_await read_members(scope, call, 0);
  if (!call.is_started) {
    if (!ok) co_return call.name.empty() && is_bare(scope) ? Found::kProse : Found::kBroken;
    co_return put_out(scope, call) ? Found::kCalls : Found::kBroken;
  }
  if (ok || scope.in.saw_end()) co_return Found::kCalls;
  scope.out.misfit();
  co_return Found::kOpenCalls;
}

/// False when the object is cut off or malformed, or is no call.
Task<bool> JsonBody::read_members(Scope scope, Call& call, int depth) const {
  std::string key;
  ValueReader reader(scope.in, key, kJsonStyle);
  while (true) {
    co_await skip_space(scope.in);
    const int c = co_await scope.in.peek();
    if (c == ',' || c == '}') {
      scope.in.skip();
      if (c == '}') co_return true;
      continue;
    }
    bool ok = co_await reader.key(key);
    if (ok) ok = co_await read_member(scope, call, text_of(key), depth);
    if (!ok) co_return false;
  }
}

Task<bool> JsonBody::read_member(Scope scope, Call& call, std::string key, int depth) const {
  if (call.name.empty() && is_name_key(key)) co_return co_await read_name(scope, call, depth);
  if (!call.is_started && call.arguments.empty() && is_arguments_key(key)) {
    co_return co_await read_arguments(scope, call);
  }
  const bool is_known =
      key == "type" || key == "tool_call_id" || is_id_key(key) || is_arguments_key(key);
  if (is_bare(scope) && call.name.empty() && !is_known) co_return false;
  std::string json;
  ValueReader reader(scope.in, json, kJsonStyle);
  const bool ok = co_await reader.value();
  if (is_id_key(key)) call.id = text_of(json);
  co_return ok;
}

/// A name, or an object that has the name in it.
Task<bool> JsonBody::read_name(Scope scope, Call& call, int depth) const {
  co_await skip_space(scope.in);
  if (depth < 2) {
    const bool is_object = co_await match(scope.in, "{");
    if (is_object) co_return co_await read_members(scope, call, depth + 1);
  }
  std::string json;
  ValueReader reader(scope.in, json, kJsonStyle);
  const bool ok = co_await reader.value();
  const std::string name = text_of(json);
  if (!ok || name.empty() || (is_bare(scope) && !scope.tools.has(name))) co_return false;
  call.name = name;
  co_return true;
}

Task<bool> JsonBody::read_arguments(Scope scope, Call& call) const {
  co_await skip_space(scope.in);
  const bool is_object = co_await looks_like_object(scope.in, kJsonStyle);
  if (!is_object || call.name.empty() || markers_.id_comes_last) {
    ValueReader reader(scope.in, call.arguments, kJsonStyle);
    co_return co_await reader.value();
  }
  scope.out.start_call(call.name, call.id);
  call.is_started = true;
  ValueReader reader(scope.in, scope.out.arguments(), kJsonStyle);
  const bool ok = co_await reader.value();
  call.is_whole = ok;
  scope.out.end_call(ok);
  co_return ok;
}

/// Puts out a call whose members were all read. False when it is none.
bool JsonBody::put_out(Scope scope, Call& call) const {
  const auto arguments = arguments_object(call.arguments);
  if (call.name.empty() || !arguments) return false;
  if (is_bare(scope) && call.arguments.empty()) return false;
  scope.out.start_call(call.name, call.id);
  scope.out.arguments() += *arguments;
  scope.out.end_call(true);
  return true;
}

}  // namespace tandem::dialect
