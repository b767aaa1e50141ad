// A checkpoint over several ranks, in one of the ways to cut it and to feed it, against its logits.
#pragma once

#include "golden_files.h"
#include "runner/ranks_test.h"

namespace tandem {

/// How the ranks share a model, and how they are given the golden prompt.
struct Cut {
  std::string variant;
  topology::Split split = topology::Split::kTensor;
  uint32_t ranks = 1;
  std::vector<double> shares = {};
  size_t chunk = 11;  // tokens of a step
  tensor::Path path = tensor::Path::kFast;
  bool frees_windows = false;  // layers that see a window keep no more of it
};

inline constexpr uint32_t kSplitPageTokens = 8, kSplitPages = 16;

/// What layers other than those with full attention need of each row: states in two slots by turns,
/// and the pages of windows.
inline void give_sides(std::vector<plan::StepPlan>& plans,
                       const model::Config& config,
                       bool frees_windows) {
  runner::History history;
  history.slots = {1, 0};
  runner::Pages window_pages(kSplitPages, kSplitPageTokens, 8);
  for (plan::StepPlan& plan : plans) {
    if (!config.is_recurrent.empty()) history.carry(plan.rows[0]);
    if (frees_windows) history.show(plan.rows[0], model::widest_window(config), window_pages);
  }
}

/// Logits at the end of each chunk of the prompt, against those of the whole prompt in one pass.
inline void check_cut(const std::string& name, const std::string& golden_name, const Cut& cut) {
  CAPTURE(name);
  CAPTURE(cut.ranks);
  CAPTURE((cut.split == topology::Split::kPipeline));
  CAPTURE(cut.chunk);
  CAPTURE((cut.path == tensor::Path::kFast));
  CAPTURE(cut.frees_windows);
  const Golden golden(golden_name);
  const auto tokens = golden.tokens("tokens");
  auto checkpoint = format::open_checkpoint(checkpoints_folder / name);
  REQUIRE(checkpoint.has_value());
  const auto described = model::describe(**checkpoint);
  REQUIRE(described.has_value());
  auto plans = runner::chunked_plans(tokens, cut.chunk, kSplitPages, kSplitPageTokens);
  give_sides(plans, described->config, cut.frees_windows);
  const auto outcome = runner::run_ranks({.checkpoint = *checkpoint,
                                          .path = cut.path,
                                          .kv_type = runner::KvType::kF32,
                                          .split = cut.split,
                                          .ranks = cut.ranks,
                                          .shares = cut.shares,
                                          .page_tokens = kSplitPageTokens,
                                          .pages = kSplitPages,
                                          .window_pages = cut.frees_windows ? kSplitPages : 0},
                                         plans);
  for (const Error& error : outcome.errors) FAIL(error.message);
  REQUIRE(outcome.logits.size() == plans.size());
  const auto want = golden.logits("full.logits");
  const size_t vocab = want.size() / tokens.size();
  for (size_t i = 0; i < plans.size(); ++i) {
    const size_t last = std::min(tokens.size(), (i + 1) * cut.chunk) - 1;
    const runner::Logits one(want.begin() + static_cast<std::ptrdiff_t>(last * vocab),
                             want.begin() + static_cast<std::ptrdiff_t>((last + 1) * vocab));
    CHECK(runner::largest_difference(outcome.logits[i], one) <= tolerance_of(cut.variant));
  }
}

}  // namespace tandem
