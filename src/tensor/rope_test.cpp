#include "tensor/rope.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

namespace tandem::tensor {
namespace {

using Kind = RopeSpec::Kind;

TEST_CASE("the default frequencies fall geometrically from 1") {
  const Rope rope = make_rope({.dims = 8, .base = 10000});
  REQUIRE(rope.inverse_frequencies.size() == 4);
  for (int i = 0; i < 4; ++i)
    CHECK(rope.inverse_frequencies[static_cast<size_t>(i)] == doctest::Approx(std::pow(10.0, -i)));
  CHECK(rope.scale == 1);
}

TEST_CASE("linear scaling divides every frequency") {
  const Rope plain = make_rope({.dims = 16}),
             scaled = make_rope({.kind = Kind::kLinear, .dims = 16, .factor = 4});
  for (size_t i = 0; i < 8; ++i)
    CHECK(scaled.inverse_frequencies[i] == doctest::Approx(plain.inverse_frequencies[i] / 4));
}

TEST_CASE(
    "llama3 and yarn keep the fast pairs, divide the slow ones, and never leave that range "
    "between") {
  for (const Kind kind : {Kind::kLlama3, Kind::kYarn}) {
    const RopeSpec spec = {
        .kind = kind, .dims = 128, .base = 500000, .factor = 8, .original_context = 8192};
    const Rope plain = make_rope({.dims = 128, .base = 500000}), scaled = make_rope(spec);
    CHECK(scaled.inverse_frequencies.front() == doctest::Approx(plain.inverse_frequencies.front()));
    CHECK(scaled.inverse_frequencies.back() ==
          doctest::Approx(plain.inverse_frequencies.back() / 8));
    for (size_t i = 0; i < 64; ++i) {
      CHECK(scaled.inverse_frequencies[i] <= plain.inverse_frequencies[i] * 1.0001F);
      CHECK(scaled.inverse_frequencies[i] >= plain.inverse_frequencies[i] / 8.001F);
    }
  }
}

TEST_CASE("llama3 scaling given as a divisor of each frequency is llama3 scaling") {
  const RopeSpec llama3 = {
      .kind = Kind::kLlama3, .dims = 64, .base = 500000, .factor = 32, .original_context = 8192};
  RopeSpec factors = {.kind = Kind::kFactors, .dims = 64, .base = 500000};
  bool has_blended = false;
  for (int pair = 0; pair < 32; ++pair) {  // as the published rule says it, in float32 as stored
    const double wavelength = 2 * std::numbers::pi * std::pow(500000.0, pair / 32.0);
    const double smooth = (8192 / wavelength - 1) / (4 - 1);
    has_blended |= smooth > 0 && smooth < 1;
    const double factor = smooth <= 0 ? 32 : smooth >= 1 ? 1 : 1 / ((1 - smooth) / 32 + smooth);
    factors.factors.push_back(double{static_cast<float>(factor)});
  }
  CHECK(has_blended);
  const Rope expected = make_rope(llama3), made = make_rope(factors);
  REQUIRE(made.inverse_frequencies.size() == 32);
  for (size_t i = 0; i < 32; ++i)
    CHECK(made.inverse_frequencies[i] ==
          doctest::Approx(expected.inverse_frequencies[i]).epsilon(2e-7));
  CHECK(made.scale == 1);
}

TEST_CASE("yarn scales the rotated values unless told another factor") {
  const RopeSpec spec = {.kind = Kind::kYarn, .dims = 64, .factor = 4, .original_context = 32};
  CHECK(make_rope(spec).scale == doctest::Approx(0.1 * std::log(4.0) + 1));
  RopeSpec both = spec;
  both.mscale_all_dim = 1;
  CHECK(make_rope(both).scale == doctest::Approx(1));
  both.attention_factor = 1.25;
  CHECK(make_rope(both).scale == doctest::Approx(1.25));
}

}  // namespace
}  // namespace tandem::tensor
