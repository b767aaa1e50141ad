// The same checkpoints over several ranks, against the same logits.
#include "golden_files.h"
#include "runner/ranks_test.h"

namespace tandem {
namespace {

using runner::chunked_plans;
using topology::Split;

struct Cut {
  const char* variant;
  Split split;
  uint32_t ranks;
  std::vector<double> shares = {};
};

/// Every pair of variant, split and number of ranks that can go wrong by itself; `./dev deep` would
/// add nothing but time.
const std::vector<Cut> kCuts = {{"f32", Split::kTensor, 2},
                                {"f32", Split::kTensor, 3},
                                {"f32", Split::kTensor, 4},
                                {"f32", Split::kPipeline, 2},
                                {"g32", Split::kTensor, 2, {0.7, 0.3}},
                                {"g32", Split::kTensor, 4},
                                {"g64", Split::kTensor, 3},
                                {"g64", Split::kPipeline, 2}};

/// The same for the micro-scaled ones: groups of 32, and of 16 with uneven shares.
const std::vector<Cut> kMicroScaledCuts = {{"mxfp4", Split::kTensor, 2},
                                           {"mxfp4", Split::kTensor, 4},
                                           {"mxfp4", Split::kPipeline, 2},
                                           {"mxfp8", Split::kTensor, 3},
                                           {"nvfp4", Split::kTensor, 2, {0.7, 0.3}}};

constexpr uint32_t kSplitPageTokens = 8, kSplitPages = 16;
constexpr size_t kChunk = 11;

/// Each row goes on from the state that the one before it left, in two slots by turns.
void carry_states(std::vector<plan::StepPlan>& plans) {
  runner::History history;
  history.slots = {1, 0};
  for (plan::StepPlan& plan : plans) history.carry(plan.rows[0]);
}

/// Logits at the end of each chunk of the prompt, against those of the whole prompt in one pass.
void check(const std::string& name, const std::string& golden_name, const Cut& cut) {
  CAPTURE(name);
  CAPTURE(cut.ranks);
  CAPTURE((cut.split == Split::kPipeline));
  const Golden golden(golden_name);
  const auto tokens = golden.tokens("tokens");
  auto checkpoint = format::open_checkpoint(checkpoints_folder / name);
  REQUIRE(checkpoint.has_value());
  auto plans = chunked_plans(tokens, kChunk, kSplitPages, kSplitPageTokens);
  const auto described = model::describe(**checkpoint);
  REQUIRE(described.has_value());
  if (!described->config.is_recurrent.empty()) carry_states(plans);
  const auto outcome = runner::run_ranks({.checkpoint = *checkpoint,
                                          .kv_type = runner::KvType::kF32,
                                          .split = cut.split,
                                          .ranks = cut.ranks,
                                          .shares = cut.shares,
                                          .page_tokens = kSplitPageTokens,
                                          .pages = kSplitPages},
                                         plans);
  for (const Error& error : outcome.errors) FAIL(error.message);
  REQUIRE(outcome.logits.size() == plans.size());
  const auto want = golden.logits("full.logits");
  const size_t vocab = want.size() / tokens.size();
  for (size_t i = 0; i < plans.size(); ++i) {
    const size_t last = std::min(tokens.size(), (i + 1) * kChunk) - 1;
    const runner::Logits one(want.begin() + static_cast<std::ptrdiff_t>(last * vocab),
                             want.begin() + static_cast<std::ptrdiff_t>((last + 1) * vocab));
    CHECK(runner::largest_difference(outcome.logits[i], one) <= tolerance_of(cut.variant));
  }
}

void check(const std::string& model, const Cut& cut) {
  const std::string name = model + "-" + cut.variant;
  check(name, name, cut);
}

TEST_CASE("split: every family gives its logits over any ranks, cut by tensors or by layers") {
  for (const char* model : kModels)
    for (const Cut& cut : kCuts) check(model, cut);
}

TEST_CASE("split: so do micro-scaled ones, and the release of gpt-oss") {
  for (const char* model : kMicroScaled)
    for (const Cut& cut : kMicroScaledCuts) check(model, cut);
  check(kReleased, {"mxfp4", Split::kTensor, 3});
  check(kReleased, {"mxfp4", Split::kPipeline, 2});
}

TEST_CASE("split: checkpoints as they were released are cut like those made from them") {
  for (const char* model : kUpstream)
    check(std::string(model) + "-upstream", std::string(model) + "-f32",
          {"f32", Split::kTensor, 3});
}

TEST_CASE("split: GGUF files over any ranks") {
  for (const char* model : kGguf)
    for (const Cut& cut : {Cut{"f32", Split::kTensor, 3}, Cut{"f32", Split::kPipeline, 2}})
      check(std::string(model) + "-f32.gguf", std::string(model) + "-f32", cut);
}

TEST_CASE("split: models as their publishers lay them out, over any ranks") {
  for (const char* name : kLayouts)
    for (const Cut& cut : {Cut{"layout", Split::kTensor, 2, {0.7, 0.3}},
                           Cut{"layout", Split::kTensor, 3}, Cut{"layout", Split::kPipeline, 2}}) {
      check(name, name, cut);
    }
}

}  // namespace
}  // namespace tandem
