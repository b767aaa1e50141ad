#include "dialect/bare_calls.h"

#include <utility>

namespace tandem::dialect {

BareCalls::BareCalls(BareCallMarkers markers)
    : markers_(std::move(markers)),
      values_{.bare_keys = true, .bare_words = true, .quote = markers_.quote} {}

Task<Found> BareCalls::read(Scope scope) const {
  Found found = Found::kProse;
  while (true) {
    const Input::Mark before(scope.in);
    co_await skip_space(scope.in);
    bool is_call = co_await match(scope.in, "call:");
    if (!is_call) {
      if (found != Found::kCalls) co_return found;
      const bool closed = co_await match(scope.in, markers_.end);
      if (closed || scope.in.saw_end()) co_return found;
      before.go_back();
      co_return Found::kOpenCalls;
    }
    std::string name = co_await read_word(scope.in, {});
    is_call = co_await looks_like_object(scope.in, values_);
    if (name.empty() || !is_call) {
      if (found != Found::kCalls) co_return Found::kBroken;
      before.go_back();
      co_return Found::kOpenCalls;
    }
    scope.out.start_call(std::move(name), {});
    ValueReader reader(scope.in, scope.out.arguments(), values_);
    const bool ok = co_await reader.value();
    scope.out.end_call(ok);
    if (!ok && scope.in.saw_end()) co_return Found::kCalls;
    if (!ok) {
      scope.out.misfit();
      co_return Found::kOpenCalls;
    }
    found = Found::kCalls;
  }
}

}  // namespace tandem::dialect
