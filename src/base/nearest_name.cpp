#include "base/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"

namespace tandem {
namespace {

/// Letters to insert, drop or change to make one of the other (Levenshtein).
size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, changed});
    }
  }
  return row.back();
}

/// Least for names that go on from each other, of these for the one with the most in common.
std::pair<size_t, size_t> distance(std::string_view name, std::string_view other) {
  const size_t apart = std::max(name.size(), other.size()) - std::min(name.size(), other.size());
  const bool goes_on = !name.empty() && (name.starts_with(other) || other.starts_with(name));
  return {goes_on ? 0 : edits_between(name, other), apart};
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
  TANDEM_CHECK(!known.empty(), "no names to choose from");
  return *std::ranges::min_element(known, {},
                                   [&](std::string_view each) { return distance(name, each); });
}

}  // namespace tandem
