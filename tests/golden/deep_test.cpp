// All checkpoints in all ways to cut and to feed them: hours, `./dev deep`. What runs in every test
// is split_test.cpp.
#include <fmt/format.h>

#include <cstdio>

#include "cuts.h"

namespace tandem {
namespace {

using topology::Split;

constexpr uint32_t kMostRanks = 6;  // more than the heads of any
constexpr uint32_t kMostUneven = 4;
constexpr size_t kWhole = 4096;  // longer than the prompts

/// Ranks and shares: as many as there are layers in a pipeline, each rank n times the first's share
/// in uneven tensor splits.
std::vector<Cut> rank_cuts(const std::string& variant, uint32_t layers) {
  std::vector<Cut> out;
  for (uint32_t ranks = 2; ranks <= kMostRanks; ++ranks) {
    out.push_back({variant, Split::kTensor, ranks});
    if (ranks <= layers) out.push_back({variant, Split::kPipeline, ranks});
    if (ranks > kMostUneven) continue;
    std::vector<double> shares;
    for (uint32_t rank = 1; rank <= ranks; ++rank)
      shares.push_back(2.0 * rank / ranks / (ranks + 1));
    out.push_back({variant, Split::kTensor, ranks, shares});
  }
  return out;
}

std::vector<Cut> all_cuts(const std::string& variant, const model::Config& config) {
  std::vector<Cut> out;
  for (Cut cut : rank_cuts(variant, config.layers)) {
    for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
      for (const size_t chunk : {size_t{1}, size_t{11}, kWhole}) {
        cut.path = path;
        cut.chunk = chunk;
        cut.frees_windows = false;
        out.push_back(cut);
        cut.frees_windows = true;
        if (model::widest_window(config) > 0 && chunk < kWhole) out.push_back(cut);
      }
    }
  }
  return out;
}

struct Case {
  std::string name, golden, variant;
};

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const auto& [model, variant] : all_checkpoints())
    out.push_back({model + "-" + variant, model + "-" + variant, variant});
  for (const std::string model : kUpstream)
    out.push_back({model + "-upstream", model + "-f32", "f32"});
  for (const char* name : kLayouts) out.push_back({name, name, "layout"});
  std::erase_if(out, [](const Case& one) { return !one.name.starts_with(only_checkpoints); });
  return out;
}

/// Says how far it is, every half minute and at the end.
class Progress {
 public:
  Progress(std::string name, size_t ways) : name_(std::move(name)), ways_(ways) {}

  void step() {
    const Clock::time_point now = Clock::now();
    if (++done_ < ways_ && now - said_ < std::chrono::seconds(30)) return;
    said_ = now;
    const std::chrono::duration<double> took = now - start_;
    fmt::print("{}: {} of {} ways in {:.0f} s\n", name_, done_, ways_, took.count());
    std::fflush(stdout);
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::string name_;
  const size_t ways_;
  size_t done_ = 0;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point said_ = start_;
};

// A process for each checkpoint (tools/deep.sh): MLX ends no thread of a stream, and each rank of
// the plain path begins some.
TEST_CASE("deep: a checkpoint over any ranks, in any steps, on both paths" * doctest::skip()) {
  const std::vector<Case> cases = all_cases();
  REQUIRE_MESSAGE(!cases.empty(), "no checkpoint's name begins with ", only_checkpoints);
  for (const Case& one : cases) {
    const auto checkpoint = format::open_checkpoint(checkpoints_folder / one.name);
    REQUIRE(checkpoint.has_value());
    const auto described = model::describe(**checkpoint);
    REQUIRE(described.has_value());
    const std::vector<Cut> cuts = all_cuts(one.variant, described->config);
    Progress progress(one.name, cuts.size());
    for (const Cut& cut : cuts) {
      check_cut(one.name, one.golden, cut);
      progress.step();
    }
  }
}

}  // namespace
}  // namespace tandem
