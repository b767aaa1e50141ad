#include "dialect/any_syntax.h"

#include <algorithm>

namespace tandem::dialect {
namespace {

void add_new(std::vector<std::string>& to, const std::vector<std::string>& strings) {
  for (const std::string& string : strings) {
    if (std::ranges::find(to, string) == to.end()) to.push_back(string);
  }
}

bool reads(const Syntax& syntax, std::string_view start) {
  if (start.empty()) return syntax.bare_start() != 0;
  const auto starts = syntax.starts();
  return std::ranges::find(starts, start) != starts.end();
}

}  // namespace

std::vector<std::string> AnySyntax::starts() const {
  std::vector<std::string> all;
  for (const SyntaxPtr& part : parts_) add_new(all, part->starts());
  return all;
}

std::vector<std::string> AnySyntax::literals() const {
  std::vector<std::string> all;
  for (const SyntaxPtr& part : parts_) add_new(all, part->literals());
  return all;
}

char AnySyntax::bare_start() const {
  for (const SyntaxPtr& part : parts_) {
    if (part->bare_start() != 0) return part->bare_start();
  }
  return 0;
}

std::vector<std::string> AnySyntax::bare_name_keys() const {
  std::vector<std::string> all;
  for (const SyntaxPtr& part : parts_) add_new(all, part->bare_name_keys());
  return all;
}

Task<Found> AnySyntax::read(Scope scope) const {
  const Input::Mark start(scope.in);
  Found worst = Found::kProse;
  for (const SyntaxPtr& part : parts_) {
    if (!reads(*part, scope.start)) continue;
    start.go_back();
    const Found found = co_await part->read(scope);
    if (found != Found::kProse && found != Found::kBroken) co_return found;
    if (found == Found::kBroken) worst = found;
  }
  if (is_markup_ && !scope.start.empty() && !scope.in.saw_end()) {
    start.go_back();
    co_return Found::kNoCall;
  }
  co_return worst;
}

}  // namespace tandem::dialect
