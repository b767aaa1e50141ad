#include "base/nearest_name.h"

#include <doctest/doctest.h>

#include <array>

namespace tandem {
namespace {

constexpr std::array<std::string_view, 4> kFamilies = {"gemma3", "llama", "qwen3", "qwen35"};

TEST_CASE("nearest_name: a name that goes on from others is nearest to the longest of them") {
  CHECK(nearest_name("qwen35vl", kFamilies) == "qwen35");
  CHECK(nearest_name("qwen", kFamilies) == "qwen3");
}

TEST_CASE("nearest_name: otherwise the one with the fewest letters to change") {
  CHECK(nearest_name("lama2", kFamilies) == "llama");
  CHECK(nearest_name("gema4", kFamilies) == "gemma3");
}

}  // namespace
}  // namespace tandem
