#include "sample/philox.h"

#include <doctest/doctest.h>

using namespace tandem::sample;

TEST_CASE("philox: the published known answers") {
  using Words = std::array<uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("philox: numbers are uniform and differ by seed, choice, position and purpose") {
  double sum = 0;
  for (uint32_t i = 0; i < 10000; ++i) {
    const double u = uniform({.seed = 1, .choice = 0, .position = i}, Purpose::kToken);
    CHECK(u >= 0);
    CHECK(u < 1);
    sum += u;
  }
  CHECK(sum == doctest::Approx(5000).epsilon(0.02));
  const double base = uniform({.seed = 1, .choice = 2, .position = 3}, Purpose::kToken);
  CHECK(base != uniform({.seed = 1, .choice = 2, .position = 3}, Purpose::kXtc));
  CHECK(base != uniform({.seed = 1 + (1ULL << 40), .choice = 2, .position = 3}, Purpose::kToken));
  CHECK(base != uniform({.seed = 1, .choice = 3, .position = 3}, Purpose::kToken));
  CHECK(base != uniform({.seed = 1, .choice = 2, .position = 4}, Purpose::kToken));
}
