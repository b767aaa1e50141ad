#include "base/histogram.h"

#include <doctest/doctest.h>

namespace tandem {
namespace {

using Counts = std::vector<uint64_t>;

TEST_CASE("histogram: a value lies under the first bound that is not below it") {
  Histogram histogram({1, 2});
  for (const double value : {0.5, 1.0, 1.5, 2.0, 2.5}) histogram.add(value);
  histogram.add(4, 3);
  CHECK(histogram.counts() == Counts{2, 2, 4});
  CHECK(histogram.sum() == doctest::Approx(19.5));
}

TEST_CASE("histogram: the sum of two counts each value once, and other bounds change nothing") {
  Histogram histogram({1, 2});
  histogram.add(1.5);
  histogram.add(Counts{1, 2, 3}, 20);
  histogram.add(Counts{1, 2}, 20);
  CHECK(histogram.counts() == Counts{1, 3, 3});
  CHECK(histogram.sum() == doctest::Approx(21.5));
}

}  // namespace
}  // namespace tandem
