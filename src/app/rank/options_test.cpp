#include "app/rank/options.h"

#include <doctest/doctest.h>

#include <optional>

#include "kernels/cpu_level.h"

namespace tandem::app {
namespace {

/// What tandem-rank takes these options for; otherwise nothing.
std::optional<RankOptions> parsed(std::vector<const char*> words) {
  std::vector<const char*> line = {"tandem-rank", "--rank",    "0",           "--size",
                                   "1",           "--control", "127.0.0.1:1", "--fake"};
  line.insert(line.end(), words.begin(), words.end());
  auto result = parse_rank_options(static_cast<int>(line.size()), line.data());
  if (const auto* options = std::get_if<RankOptions>(&result)) return *options;
  return std::nullopt;
}

TEST_CASE("rank options: each CPU level of every architecture can be named") {
  using kernels::CpuLevel;
  for (const CpuLevel level : {CpuLevel::kPortable, CpuLevel::kAvx2, CpuLevel::kAvx512,
                               CpuLevel::kAmx, CpuLevel::kNeon, CpuLevel::kNeonDot}) {
    CAPTURE(kernels::name(level));
    const auto options = parsed({"--cpu-level", kernels::name(level)});
    REQUIRE(options);
    CHECK(options->cpu_level == kernels::name(level));
  }
  CHECK_FALSE(parsed({"--cpu-level", "mmx"}));
}

}  // namespace
}  // namespace tandem::app
