#include "dialect/python_calls.h"

#include <utility>

#include "dialect/call_builder.h"

namespace tandem::dialect {
namespace {

const ValueStyle kPythonWords{.bare_words = true, .python = true};

}  // namespace

std::vector<std::string> PythonCalls::literals() const {
  std::vector<std::string> result = markers_.starts;
  if (!markers_.end.empty()) result.push_back(markers_.end);
  return result;
}

Task<Found> PythonCalls::read(Scope scope) const {
  Found found = Found::kProse;
  co_await skip_space(scope.in);
  if (markers_.in_list) {
    const bool is_list = co_await match(scope.in, "[");
    if (!is_list) co_return found;
  }
  while (true) {
    const Input::Mark before(scope.in);
    co_await skip_space(scope.in);
    if (found == Found::kCalls) {
      const std::string_view separator = markers_.in_list ? "," : ";";
      co_await match(scope.in, separator);
      co_await skip_space(scope.in);
      bool is_over = false;
      if (markers_.in_list) is_over = co_await match(scope.in, "]");
      if (is_over) break;
    }
    const Found next = co_await read_call(scope);
    if (next == Found::kCalls) {
      found = next;
      continue;
    }
    if (found != Found::kCalls) co_return next;
    if (next != Found::kOpenCalls) before.go_back();
    if (next == Found::kProse && markers_.end.empty()) co_return found;
    co_return scope.in.saw_end() ? found : Found::kOpenCalls;
  }
  const Input::Mark after(scope.in);
  co_await skip_space(scope.in);
  const bool closed = co_await match(scope.in, markers_.end);
  if (closed || scope.in.saw_end()) co_return found;
  after.go_back();
  co_return Found::kOpenCalls;
}

Task<Found> PythonCalls::read_call(Scope scope) const {
  std::string name = co_await read_word(scope.in, ":/");
  if (name.empty()) co_return Found::kProse;
  const bool is_call = co_await match(scope.in, "(");
  if (!is_call) co_return Found::kProse;
  if (!markers_.suffix.empty()) {
    if (!name.ends_with(markers_.suffix)) co_return Found::kProse;
    name.resize(name.size() - markers_.suffix.size());
    if (name.empty()) co_return Found::kProse;
  }
  const bool has_keywords = co_await looks_like_keywords(scope);
  if (!has_keywords) co_return Found::kBroken;
  CallBuilder call(scope.out, std::move(name), {});
  const bool ok = co_await read_keywords(scope, call);
  call.end(ok);
  if (ok || scope.in.saw_end()) co_return Found::kCalls;
  scope.out.misfit();
  co_return Found::kOpenCalls;
}

/// After "(": a name and "=", or ")". Reads nothing.
Task<bool> PythonCalls::looks_like_keywords(Scope scope) const {
  const Input::Mark here(scope.in);
  co_await skip_space(scope.in);
  const int c = co_await scope.in.peek();
  bool ok = c == ')';
  if (!ok) {
    const std::string key = co_await read_word(scope.in, ":/-.");
    co_await skip_space(scope.in);
    const int next = co_await scope.in.peek();
    ok = !key.empty() && next == '=';
  }
  here.go_back();
  co_return ok;
}

Task<bool> PythonCalls::read_keywords(Scope scope, CallBuilder& call) const {
  while (true) {
    co_await skip_space(scope.in);
    const int c = co_await scope.in.peek();
    if (c == ',' || c == ')') {
      scope.in.skip();
      if (c == ')') co_return true;
      continue;
    }
    const std::string key = co_await read_word(scope.in, ":/-.");
    co_await skip_space(scope.in);
    const bool has_value = co_await match(scope.in, "=");
    if (key.empty() || !has_value) co_return false;
    co_await skip_space(scope.in);
    const int first = co_await scope.in.peek();
    if (first == Input::kEnd) co_return false;
    ValueReader reader(scope.in, call.add(key), kPythonWords);
    const bool ok = co_await reader.value();
    if (!ok) co_return false;
  }
}

}  // namespace tandem::dialect
