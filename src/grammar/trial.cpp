#include "grammar/trial.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <utility>

#include "grammar/matcher.h"

namespace tandem::grammar {
namespace {

constexpr uint32_t kWalks = 4;  // of which the first takes the lowest ids, the others any
constexpr size_t kTokens = 48;  // of a walk whose masks do not grow
// The same of rules that may read a text in many ways: what those leave open can grow where only
// one token is allowed, and then no mask shows it.
constexpr size_t kTokensIfAmbiguous = 192;
constexpr size_t kMostTokens = 512;
constexpr size_t kFewTokens = 128;
constexpr size_t kLittleFollowed = 1000;  // parts of rules, which take a millisecond

/// The ids that the mask allows but these.
std::vector<gen::TokenId> allowed_but(const gen::TokenMask& mask,
                                      const std::vector<gen::TokenId>& but) {
  std::vector<gen::TokenId> ids;
  for (size_t word = 0; word < mask.size(); ++word) {
    for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      const auto id = static_cast<gen::TokenId>(word * 32 + std::countr_zero(bits));
      if (std::ranges::find(but, id) == but.end()) ids.push_back(id);
    }
  }
  return ids;
}

/// What each mask followed, and whether that grows with what was taken.
class Costs {
 public:
  void add(size_t followed) { all_.push_back(followed); }
  size_t count() const { return all_.size(); }

  /// Whether some of the last quarter followed more than any before it by a quarter: less than what
  /// grows steadily does.
  bool grow() const {
    const auto late = all_.end() - static_cast<ptrdiff_t>(all_.size() / 4);
    if (late == all_.end()) return false;
    const size_t now = *std::max_element(late, all_.end());
    const size_t before = *std::max_element(all_.begin(), late);
    return now > kLittleFollowed && now * 4 > before * 5;
  }

 private:
  std::vector<size_t> all_;
};

Error grows() {
  return {
      ErrorCode::kInvalid,
      "the grammar reads its texts in so many ways that each token costs more than those "
      "before: let its rules overlap less (a repetition inside of a repetition, as in (x+)+, is "
      "what most often does it)",
      "grammar"};
}

/// One beginning. `number` chooses the ids; 0 takes the lowest.
Status walk(Matcher& matcher, const Trial& trial, uint32_t number) {
  Costs costs;
  const bool is_lowest = number == 0;
  const size_t least = trial.is_ambiguous ? kTokensIfAmbiguous : kTokens;
  while (costs.count() < least || (costs.grow() && costs.count() < kMostTokens)) {
    if (trial.is_over()) {
      return costs.count() < kFewTokens && costs.grow() ? Status(grows()) : Status();
    }
    const auto mask = matcher.allowed();
    if (!mask) return mask.error();
    costs.add(matcher.followed());
    const auto ids = allowed_but(*mask, trial.eos);
    if (ids.empty()) return {};
    number = number * 1664525 + 1013904223;
    const gen::TokenId id = ids[is_lowest ? 0 : (number >> 8) % ids.size()];
    if (Status fits = matcher.take({&id, 1}); !fits) return fits;
  }
  return {};
}

}  // namespace

Status try_beginnings(const tb_matcher& matcher, const Trial& trial) {
  constexpr uint32_t kSeeds = 2463534242;
  for (uint32_t i = 0; i < kWalks; ++i) {
    auto copy = text::bridge::clone(matcher);
    if (!copy) return copy.error();
    Matcher constraint(*std::move(copy), trial.logits);
    Status fits = walk(constraint, trial, i * kSeeds);
    if (fits) continue;
    Error error = fits.error();
    error.code = ErrorCode::kInvalid;
    return error;
  }
  return {};
}

}  // namespace tandem::grammar
