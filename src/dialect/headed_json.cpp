#include "dialect/headed_json.h"

#include <utility>

#include "dialect/json_text.h"
#include "dialect/value_reader.h"

namespace tandem::dialect {
namespace {

void add(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

struct HeadedJson::Head {
  std::string name = {};
  std::string id = {};
};

std::vector<std::string> HeadedJson::literals() const {
  std::vector<std::string> result = markers_.starts;
  add(result, markers_.call_begins);
  add(result, markers_.head_ends);
  add(result, markers_.before_name);
  add(result, markers_.call_ends);
  if (!markers_.end.empty()) result.push_back(markers_.end);
  if (!markers_.before_id.empty()) result.push_back(markers_.before_id);
  if (markers_.list) add(result, markers_.list->literals());
  std::erase_if(result, [](const std::string& text) { return text.starts_with('`'); });
  return result;
}

Task<Found> HeadedJson::read(Scope scope) const {
  co_await skip_space(scope.in);
  if (markers_.list) {
    const int c = co_await scope.in.peek();
    if (c == '[' || c == '{') co_return co_await markers_.list->read(scope);
  }
  Found found = Found::kProse;
  while (true) {
    const Input::Mark before(scope.in);
    co_await skip_space(scope.in);
    if (found == Found::kCalls && !markers_.end.empty()) {
      const bool is_over = co_await match(scope.in, markers_.end);
      if (is_over) co_return found;
    }
    Head head;
    const bool has_head = co_await read_head(scope, head);
    if (!has_head) {
      if (found != Found::kCalls) co_return found;
      before.go_back();
      co_return markers_.end.empty() ? found : Found::kOpenCalls;
    }
    const bool has_arguments = co_await looks_like_object(scope.in, kJsonStyle);
    if (!has_arguments) {
      if (found != Found::kCalls) co_return Found::kBroken;
      before.go_back();
      co_return Found::kOpenCalls;
    }
    const bool ok = co_await read_arguments(scope, head);
    if (!ok) co_return scope.in.saw_end() ? Found::kCalls : Found::kOpenCalls;
    found = Found::kCalls;
  }
}

/// Up to the arguments. False, with nothing read, when there is none.
Task<bool> HeadedJson::read_head(Scope scope, Head& head) const {
  const Input::Mark start(scope.in);
  const size_t begun = co_await match_any(scope.in, markers_.call_begins);
  co_await skip_space(scope.in);
  co_await match_any(scope.in, markers_.before_name);
  head.name = co_await read_word(scope.in, {});
  bool ok = !head.name.empty();
  if (ok) co_await skip_space(scope.in);
  if (ok && !markers_.before_id.empty()) {
    const bool has_id = co_await match(scope.in, markers_.before_id);
    if (has_id) head.id = co_await read_word(scope.in, {});
  }
  if (ok) {
    size_t ended = co_await match_any(scope.in, markers_.head_ends);
    if (ended == markers_.head_ends.size() && begun < markers_.call_begins.size()) {
      // A call that was begun may go on with its arguments at once.
      const int c = co_await scope.in.peek();
      if (c == '{') ended = 0;
    }
    ok = ended < markers_.head_ends.size();
  }
  if (!ok) {
    if (!scope.in.saw_end()) start.go_back();
    co_return false;
  }
  co_await skip_space(scope.in);
  split_id(head);
  co_return true;
}

/// "functions.NAME:3" → NAME.
void HeadedJson::split_id(Head& head) const {
  if (!markers_.name_is_id) return;
  head.id = head.name;
  const size_t colon = head.name.rfind(':');
  if (colon != std::string::npos && colon > 0) head.name.resize(colon);
  constexpr std::string_view kSpace = "functions.";
  if (head.name.starts_with(kSpace) && head.name.size() > kSpace.size()) {
    head.name.erase(0, kSpace.size());
  }
}

Task<bool> HeadedJson::read_arguments(Scope scope, Head head) const {
  scope.out.start_call(std::move(head.name), std::move(head.id));
  ValueReader reader(scope.in, scope.out.arguments(), kJsonStyle);
  const bool ok = co_await reader.value();
  scope.out.end_call(ok);
  if (!ok) {
    if (!scope.in.saw_end()) scope.out.misfit();
    co_return false;
  }
  const Input::Mark after(scope.in);
  co_await skip_space(scope.in);
  co_await match_any(scope.in, markers_.after);
  co_await skip_space(scope.in);
  const size_t ended = co_await match_any(scope.in, markers_.call_ends);
  if (ended == markers_.call_ends.size() && !scope.in.saw_end()) after.go_back();
  co_return true;
}

}  // namespace tandem::dialect
