#include "runner/warm_up.h"

#include <algorithm>
#include <optional>

namespace tandem::runner {
namespace {

/// Each way to draw: the host, greedy, by weight, filtered.
const std::vector<std::optional<plan::Draw>> kDraws = {std::nullopt, plan::Draw{},
                                                       plan::Draw{.temperature = 1},
                                                       plan::Draw{.temperature = 1, .top_p = 0.9F}};

/// Rows of these lengths, cut to what there is room for.
plan::StepPlan plan_of(const engine::RunnerInfo& info,
                       uint64_t sequence,
                       const std::vector<uint32_t>& lengths,
                       const std::optional<plan::Draw>& draw) {
  plan::StepPlan plan{.epoch = 0, .sequence = sequence, .copies = {}, .rows = {}};
  const uint32_t most = std::min(info.max_context, info.pages * info.page_tokens);
  uint32_t next_page = 0, next_window_page = 0, next_slot = 0;
  for (const uint32_t length : lengths) {
    plan::Row row;
    row.request = plan.rows.size() + 1;
    row.tokens.assign(std::min(length, most), 0);
    while (row.pages.size() * info.page_tokens < row.tokens.size())
      row.pages.push_back(next_page++ % info.pages);
    while (info.window != 0 && row.window_pages.size() < row.pages.size())
      row.window_pages.push_back(next_window_page++ % info.window_pages);
    if (info.state_slots != 0)
      row.saves.push_back({.tokens = static_cast<uint32_t>(row.tokens.size()),
                           .slot = next_slot++ % info.state_slots});
    row.wants_logits = !draw;
    row.draw = draw;
    plan.rows.push_back(std::move(row));
  }
  return plan;
}

}  // namespace

Status warm_up(ModelRunner& runner) {
  const Status begun = runner.reset(0);
  if (!begun) return begun;
  uint64_t sequence = 0;
  // Kernels of products differ by the number of rows, and those of the head see one row a request.
  std::vector<std::vector<uint32_t>> steps = {{plan::kStepTokens}, {plan::kMostRows, 1}};
  for (uint32_t rows = 1; rows <= plan::kMostRows; rows *= 2)
    steps.push_back(std::vector<uint32_t>(rows, 1));
  for (const std::vector<uint32_t>& lengths : steps) {
    for (const std::optional<plan::Draw>& draw : kDraws) {
      if (draw && !runner.info().draws) continue;
      const Status issued = runner.issue(plan_of(runner.info(), sequence++, lengths, draw));
      if (!issued) return issued;
      const auto done = runner.complete();
      if (!done) return done.error();
    }
  }
  return {};
}

}  // namespace tandem::runner
