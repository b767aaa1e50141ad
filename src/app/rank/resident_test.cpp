#include "app/rank/resident.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace tandem::app {
namespace {

TEST_CASE("resident: memory that is written to counts") {
  constexpr size_t kBytes = size_t{64} << 20;
  const uint64_t before = resident_bytes();
  REQUIRE(before > 0);
  const std::vector<char> written(kBytes, 1);
  CHECK(resident_bytes() >= before + kBytes * 9 / 10);
  CHECK(written[kBytes / 2] == 1);
}

}  // namespace
}  // namespace tandem::app
