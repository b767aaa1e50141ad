#include "gen/common_tokens.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace tandem::gen {
namespace {

TEST_CASE("common tokens: as many as were shared, from either side, and no more") {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<TokenId> a(random() % 20);
    for (TokenId& token : a) token = static_cast<TokenId>(random() % 3);
    std::vector<TokenId> b = a;
    for (size_t more = random() % 4; more > 0; --more) b.push_back(1);
    size_t expected = a.size();
    if (!a.empty() && random() % 2 == 0) {
      expected = random() % a.size();
      b[expected] += 7;
    }
    CHECK(common_tokens(a, b) == expected);
    CHECK(common_tokens(b, a) == expected);
  }
}

}  // namespace
}  // namespace tandem::gen
