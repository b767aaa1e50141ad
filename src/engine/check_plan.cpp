#include "engine/check_plan.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

namespace tandem::engine {
namespace {

Error misfit(std::string message) { return {ErrorCode::kInvalid, "plan: " + std::move(message)}; }

Status check_place(const plan::Row& row, const RunnerInfo& info) {
  if (row.tokens.empty()) return misfit(fmt::format("request {} has no tokens", row.request));
  const uint64_t end = uint64_t{row.start} + row.tokens.size();
  if (end > info.max_context)
    return misfit(
        fmt::format("request {} has {} positions of {}", row.request, end, info.max_context));
  if (row.pages.size() * uint64_t{info.page_tokens} < end)
    return misfit(fmt::format("request {} has {} pages of {} for {} positions", row.request,
                              row.pages.size(), info.page_tokens, end));
  for (const plan::PageId page : row.pages)
    if (page >= info.pages) return misfit(fmt::format("page {} of {}", page, info.pages));
  return {};
}

Status check_output(const plan::Row& row, const RunnerInfo& info) {
  if (!row.draw) return {};
  if (!info.draws) return misfit("this runner does not draw");
  if (row.wants_logits)
    return misfit(fmt::format("request {} draws, and wants logits too", row.request));
  return {};
}

Status check_tokens(const plan::Row& row, const RunnerInfo& info, const DrewLast& drew_last) {
  if (goes_on(row) && drew_last(row.request)) return {};
  for (const plan::TokenId token : row.tokens)
    if (token < 0 || static_cast<uint32_t>(token) >= info.vocab)
      return misfit(fmt::format("token {} of {}", token, info.vocab));
  return {};
}

Status check_copies(const plan::StepPlan& plan, const RunnerInfo& info) {
  for (const plan::PageCopy& copy : plan.copies)
    if (copy.from >= info.pages || copy.to >= info.pages || copy.from == copy.to)
      return misfit(fmt::format("copy of page {} to {} of {}", copy.from, copy.to, info.pages));
  return {};
}

Status check_turn(const plan::StepPlan& plan, const RunnerInfo& info, const PlanTurn& turn) {
  if (plan.epoch != turn.epoch)
    return misfit(fmt::format("epoch {} came in epoch {}", plan.epoch, turn.epoch));
  if (plan.sequence != turn.sequence)
    return misfit(fmt::format("step {} came where {} was due", plan.sequence, turn.sequence));
  if (turn.in_flight >= info.depth)
    return misfit(fmt::format("more than {} steps in flight", info.depth));
  if (plan.rows.empty() && plan.copies.empty()) return misfit("it holds nothing");
  return {};
}

}  // namespace

Status check_plan(const plan::StepPlan& plan,
                  const RunnerInfo& info,
                  const PlanTurn& turn,
                  const DrewLast& drew_last) {
  if (Status fits = check_turn(plan, info, turn); !fits) return fits;
  if (Status fits = check_copies(plan, info); !fits) return fits;
  std::unordered_set<plan::RequestId> requests;
  bool are_steps = false;
  for (const plan::Row& row : plan.rows) {
    if (!requests.insert(row.request).second)
      return misfit(fmt::format("request {} has two rows", row.request));
    const bool is_step = row.numeric_class == plan::NumericClass::kStep;
    if (are_steps && !is_step) return misfit("a chunk row follows a step row");
    are_steps = is_step;
    if (Status fits = check_place(row, info); !fits) return fits;
    if (Status fits = check_output(row, info); !fits) return fits;
    if (Status fits = check_tokens(row, info, drew_last); !fits) return fits;
  }
  return {};
}

}  // namespace tandem::engine
