#include "dialect/keyed_calls.h"

#include <utility>

#include "dialect/call_builder.h"
#include "dialect/value_reader.h"

namespace tandem::dialect {
namespace {

constexpr size_t kLongestKey = 512;
constexpr size_t kLongestLine = 1024;

/// Models write a line break between tags as two characters at times.
Task<bool> skip_gap(Input& in) {
  while (true) {
    co_await skip_space(in);
    const bool is_spelled = co_await match(in, "\\n");
    if (!is_spelled) co_return true;
  }
}

struct Pair {
  std::string key;
  std::string value;
};

/// key=value pairs, values perhaps in quotes. Empty when the text is anything else.
std::vector<Pair> pairs_of(std::string_view text) {
  std::vector<Pair> pairs;
  text = trimmed(text);
  while (!text.empty()) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) return {};
    Pair pair{.key = std::string(text.substr(0, equals)), .value = {}};
    if (pair.key.find_first_of(" \t\"'") != std::string::npos) return {};
    text.remove_prefix(equals + 1);
    const bool has_quotes = text.starts_with('"') || text.starts_with('\'');
    const size_t end = has_quotes ? text.find(text[0], 1) : text.find_first_of(" \t");
    if (has_quotes && end == std::string_view::npos) return {};
    pair.value = has_quotes ? text.substr(1, end - 1) : text.substr(0, end);
    pairs.push_back(std::move(pair));
    text = end == std::string_view::npos ? std::string_view()
                                         : trimmed(text.substr(end + (has_quotes ? 1 : 0)));
  }
  return pairs;
}

}  // namespace

KeyedCalls::KeyedCalls(KeyedCallMarkers markers)
    : markers_(std::move(markers)),
      values_{.close = markers_.value_close,
              .followers = {markers_.key_open, markers_.end, "\\n"},
              .untyped = Untyped::kJson},
      keys_({markers_.key_open}),
      ends_({markers_.end}),
      json_({.starts = {markers_.start}, .end = markers_.end}) {}

std::vector<std::string> KeyedCalls::literals() const {
  return {markers_.start,     markers_.end,        markers_.key_open,
          markers_.key_close, markers_.value_open, markers_.value_close};
}

Task<Found> KeyedCalls::read(Scope scope) const {
  co_await skip_gap(scope.in);
  const int c = co_await scope.in.peek();
  if (c == '{') co_return co_await json_.read(scope);
  std::string name = co_await read_word(scope.in, {});
  if (name.empty()) co_return Found::kProse;
  const Input::Mark after_name(scope.in);
  co_await skip_gap(scope.in);
  const bool has_pairs = co_await looks_at(scope.in, keys_);
  if (has_pairs) co_return co_await read_pairs(scope, std::move(name));
  const bool has_object = co_await looks_like_object(scope.in, kPythonStyle);
  if (has_object) co_return co_await read_object(scope, std::move(name));
  // Other words between the markers could be prose about them.
  if (!scope.tools.empty() && !scope.tools.has(name)) co_return Found::kProse;
  const bool is_bare = co_await looks_at(scope.in, ends_);
  if (is_bare) co_return co_await read_pairs(scope, std::move(name));
  after_name.go_back();
  co_return co_await read_line(scope, std::move(name));
}

Task<Found> KeyedCalls::read_pairs(Scope scope, std::string name) const {
  const Schema schema = scope.tools.parameters(name);
  CallBuilder call(scope.out, std::move(name), {});
  bool ok = true;
  while (true) {
    co_await skip_gap(scope.in);
    const bool is_pair = co_await match(scope.in, markers_.key_open);
    if (!is_pair) break;
    std::string key;
    ok = co_await read_until(scope.in, markers_.key_close, kLongestKey, key);
    if (ok) co_await skip_gap(scope.in);
    if (ok) ok = co_await match(scope.in, markers_.value_open);
    if (!ok) break;
    const std::string_view name_of = trimmed(key);
    const Schema of = schema.property(name_of);
    ok = co_await read_tagged_value(scope.in, values_, of.kinds(), of, call.add(name_of));
    if (!ok) break;
  }
  const bool at_end = co_await looks_at(scope.in, ends_);
  call.end(ok && at_end);
  if (at_end || scope.in.saw_end()) co_return co_await finish(scope);
  scope.out.misfit();
  co_return Found::kOpenCalls;
}

Task<Found> KeyedCalls::read_object(Scope scope, std::string name) const {
  scope.out.start_call(std::move(name), {});
  ValueReader reader(scope.in, scope.out.arguments(), kPythonStyle);
  const bool ok = co_await reader.value();
  scope.out.end_call(ok);
  if (!ok && !scope.in.saw_end()) scope.out.misfit();
  co_return co_await finish(scope);
}

Task<Found> KeyedCalls::read_line(Scope scope, std::string name) const {
  std::string line;
  const bool ended = co_await read_until(scope.in, markers_.end, kLongestLine, line);
  const auto pairs = pairs_of(line);
  if (!ended || line.find('\n') != std::string::npos || pairs.empty()) co_return Found::kProse;
  const Schema schema = scope.tools.parameters(name);
  CallBuilder call(scope.out, std::move(name), {});
  for (const Pair& pair : pairs) {
    call.add(pair.key) += typed(pair.value, schema.property(pair.key).kinds(), Untyped::kJson);
  }
  call.end(true);
  co_return Found::kCalls;
}

Task<Found> KeyedCalls::finish(Scope scope) const {
  const Input::Mark here(scope.in);
  co_await skip_gap(scope.in);
  const bool closed = co_await match(scope.in, markers_.end);
  if (closed || scope.in.saw_end()) co_return Found::kCalls;
  here.go_back();
  co_return Found::kOpenCalls;
}

}  // namespace tandem::dialect
