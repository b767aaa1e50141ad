#include "format/finite.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>

namespace tandem::format {
namespace {

constexpr Window kWhole{
    .width = 99, .first_row = 0, .end_row = 3, .first_column = 0, .end_column = 99};

/// Of a matrix [3, 99] of ones whose element `at` has other bits.
template <class Word>
bool is_finite_with(Dtype dtype, Word one, Word bits, size_t at, const Window& window = kWhole) {
  std::vector<Word> data(3 * 99, one);
  data[at] = bits;
  std::vector<std::byte> bytes(data.size() * sizeof(Word) + 1);  // unaligned
  std::memcpy(bytes.data() + 1, data.data(), data.size() * sizeof(Word));
  return is_finite(
      {.dtype = dtype, .shape = {3, 99}, .bytes = std::span(bytes).subspan(1), .owner = nullptr},
      window);
}

bool is_finite_with(uint32_t bits, size_t at, const Window& window = kWhole) {
  return is_finite_with(Dtype::kF32, std::bit_cast<uint32_t>(1.0F), bits, at, window);
}

TEST_CASE("finite: a NaN or an infinity is found wherever it lies, and no other number is") {
  for (const size_t at : {0U, 63U, 64U, 98U, 99U, 200U, 296U}) {
    CAPTURE(at);
    for (const uint32_t bits : {0x7F800000U, 0xFF800000U, 0x7F800001U, 0xFFC00000U})
      CHECK_FALSE(is_finite_with(bits, at));
    for (const uint16_t bits : std::initializer_list<uint16_t>{0x7C00, 0xFC00, 0xFE00})
      CHECK_FALSE(is_finite_with<uint16_t>(Dtype::kF16, 0x3C00, bits, at));
    for (const uint16_t bits : std::initializer_list<uint16_t>{0x7F80, 0xFF80, 0xFFC0})
      CHECK_FALSE(is_finite_with<uint16_t>(Dtype::kBF16, 0x3F80, bits, at));
  }
  CHECK(is_finite_with(0x7F7FFFFFU, 5));
  CHECK(is_finite_with<uint16_t>(Dtype::kF16, 0x3C00, 0x7BFF, 5));
  CHECK(is_finite_with<uint16_t>(Dtype::kBF16, 0x3F80, 0x7F7F, 5));
  CHECK(is_finite_with(Dtype::kU32, 1U, ~0U, 5));  // codes
}

TEST_CASE("finite: only the rows and columns that are asked for are looked at") {
  constexpr uint32_t kNan = 0x7FC00000U;
  const Window part{
      .width = 99, .first_row = 1, .end_row = 2, .first_column = 10, .end_column = 90};
  CHECK_FALSE(is_finite_with(kNan, 99 + 10, part));
  CHECK_FALSE(is_finite_with(kNan, 99 + 89, part));
  for (const size_t outside : {10U, 99U + 9U, 99U + 90U, 198U + 10U})
    CHECK(is_finite_with(kNan, outside, part));
  const Window row{.width = 99, .first_row = 1, .end_row = 2, .first_column = 0, .end_column = 99};
  CHECK_FALSE(is_finite_with(kNan, 99, row));
  CHECK_FALSE(is_finite_with(kNan, 197, row));
  CHECK(is_finite_with(kNan, 98, row));
  CHECK(is_finite_with(kNan, 198, row));
}

}  // namespace
}  // namespace tandem::format
