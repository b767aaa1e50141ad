#include "comm/sum.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tandem::comm {
namespace {

std::vector<uint16_t> sum_of(const std::vector<std::vector<uint16_t>>& rows, Dtype dtype) {
  std::vector<const std::byte*> parts;
  for (const auto& row : rows) parts.push_back(reinterpret_cast<const std::byte*>(row.data()));
  std::vector<uint16_t> out(rows[0].size());
  ordered_sum(parts, out.size(), dtype, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

/// The half nearest to a finite value, ties to even, found by search over all of them.
uint16_t nearest_half(double value) {
  uint16_t low = 0;
  uint16_t high = 0x7c00;  // counts as 2^16: what rounds there is infinity
  const double size = std::abs(value);
  const auto at = [](uint16_t bits) { return bits == 0x7c00 ? 65536.0 : half_value(bits); };
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (at(middle) <= size ? low : high) = middle;
  }
  const double below = size - at(low);
  const double above = at(high) - size;
  const bool up = size >= 65536.0 || below > above || (below == above && (low & 1) != 0);
  return static_cast<uint16_t>((std::signbit(value) ? 0x8000 : 0) | (up ? high : low));
}

}  // namespace

TEST_CASE("sums: float32 is added in rank order, at every length and alignment") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const size_t count : {0U, 1U, 3U, 63U, 64U, 65U, 1000U}) {
    std::vector<std::byte> rows[3];
    std::vector<const std::byte*> parts;
    std::vector<float> expected(count);
    for (auto& row : rows) {
      row.resize(count * 4 + 4);
      for (size_t i = 0; i < count; ++i) {
        const float value = normal(random);
        std::memcpy(row.data() + 4 + i * 4, &value, 4);  // aligned as an element
        expected[i] = &row == rows ? value : expected[i] + value;
      }
      parts.push_back(row.data() + 4);
    }
    ordered_sum(parts, count, Dtype::kFloat32, rows[1].data() + 4);
    CHECK((count == 0 || std::memcmp(rows[1].data() + 4, expected.data(), count * 4) == 0));
  }
}

TEST_CASE("sums: a half added to zero stays what it is, for all 65536 of them") {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16}) {
    std::vector<uint16_t> all;
    const int infinity = dtype == Dtype::kFloat16 ? 0x7c00 : 0x7f80;
    for (int bits = 0; bits < 65536; ++bits) {
      const bool nan = (bits & 0x7fff) > infinity;
      if (!nan && bits != 0x8000) all.push_back(static_cast<uint16_t>(bits));  // -0 + 0 = +0
    }
    CHECK(sum_of({all, std::vector<uint16_t>(all.size(), 0)}, dtype) == all);
    const auto nan = static_cast<uint16_t>(infinity + 1);
    const uint16_t result = sum_of({{nan}, {0}}, dtype)[0];
    CHECK((result & 0x7fff) > infinity);
  }
}

TEST_CASE("sums: float16 rounds the float32 sum once, to nearest even") {
  std::mt19937 random(2);
  std::vector<uint16_t> a;
  std::vector<uint16_t> b;
  std::vector<uint16_t> c;
  std::vector<uint16_t> expected;
  while (a.size() < 20000) {
    uint16_t row[3];
    for (uint16_t& x : row) x = static_cast<uint16_t>(random());
    if (a.size() % 2 == 0) row[1] = static_cast<uint16_t>((row[0] ^ 0x8000) + random() % 64);
    const float sum = static_cast<float>(half_value(row[0])) +
                      static_cast<float>(half_value(row[1])) +
                      static_cast<float>(half_value(row[2]));
    if (!std::isfinite(sum) || sum == 0) continue;
    a.push_back(row[0]);
    b.push_back(row[1]);
    c.push_back(row[2]);
    expected.push_back(nearest_half(sum));
  }
  CHECK(sum_of({a, b, c}, Dtype::kFloat16) == expected);
}

TEST_CASE("sums: bfloat16 rounds the float32 sum once, to nearest even") {
  const uint16_t one = 0x3f80;
  const uint16_t half_ulp = 0x3b80;  // 2^-8, half of 1's last place
  const uint16_t quarter_ulp = 0x3b00;
  CHECK(sum_of({{one}, {half_ulp}}, Dtype::kBfloat16)[0] == one);        // tie, even stays
  CHECK(sum_of({{0x3f81}, {half_ulp}}, Dtype::kBfloat16)[0] == 0x3f82);  // tie, odd moves
  CHECK(sum_of({{one}, {quarter_ulp}, {quarter_ulp}, {quarter_ulp}}, Dtype::kBfloat16)[0] ==
        0x3f81);  // rounding after each addition would stay at one
}

}  // namespace tandem::comm
