#include "engine/check_plan.h"

#include <fmt/format.h>

#include <algorithm>
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

Status check_window(const plan::Row& row, const RunnerInfo& info) {
  if (info.window == 0) {
    if (row.window_pages.empty() && row.window_start == 0) return {};
    return misfit("no layer of this model sees a window");
  }
  const uint64_t end = uint64_t{row.start} + row.tokens.size();
  const uint32_t first_seen = row.start + 1 - std::min(row.start + 1, info.window);
  const uint64_t covered = row.window_start + row.window_pages.size() * uint64_t{info.page_tokens};
  if (row.window_start % info.page_tokens != 0 || row.window_start > first_seen || covered < end)
    return misfit(
        fmt::format("request {} has window pages for positions {} to {} and sees {} to {}",
                    row.request, row.window_start, covered, first_seen, end));
  for (const plan::PageId page : row.window_pages)
    if (page >= info.window_pages)
      return misfit(fmt::format("window page {} of {}", page, info.window_pages));
  return {};
}

Status check_states(const plan::Row& row, const RunnerInfo& info) {
  if (info.state_slots == 0) {
    if (row.saves.empty() && !row.state) return {};
    return misfit("this model has no recurrent state");
  }
  if (row.state.has_value() != (row.start > 0))
    return misfit(fmt::format("request {} begins at position {} {} a state", row.request, row.start,
                              row.state ? "with" : "without"));
  if (row.state && *row.state >= info.state_slots)
    return misfit(fmt::format("slot {} of {}", *row.state, info.state_slots));
  uint32_t before = 1;
  for (const plan::StateSave& save : row.saves) {
    if (save.slot >= info.state_slots)
      return misfit(fmt::format("slot {} of {}", save.slot, info.state_slots));
    if (save.tokens < before || save.tokens > row.tokens.size())
      return misfit(fmt::format("request {} keeps its state after {} of {} tokens", row.request,
                                save.tokens, row.tokens.size()));
    before = save.tokens;
  }
  if (row.saves.empty() || row.saves.back().tokens != row.tokens.size())
    return misfit(fmt::format("request {} does not keep the state at its end", row.request));
  return {};
}

Status check_output(const plan::Row& row, const RunnerInfo& info) {
  const bool is_step = row.numeric_class == plan::NumericClass::kStep;
  if (row.pooling && (row.wants_logits || row.draw || is_step || info.hidden == 0))
    return misfit(
        fmt::format("request {} pools hidden states beside an answer, or of a runner "
                    "that has none",
                    row.request));
  if (!row.draw) return {};
  if (!info.draws) return misfit("this runner does not draw");
  if (row.wants_logits)
    return misfit(fmt::format("request {} draws, and wants logits too", row.request));
  return {};
}

Status check_reuse(const plan::Row& row, const RunnerInfo& info) {
  if (!row.reuse) return {};
  if (!info.chooses_blocks) return misfit("no layer of this model chooses blocks of keys");
  const plan::IndexReuse& reuse = *row.reuse;
  const bool is_step = row.numeric_class == plan::NumericClass::kStep;
  if (!is_step || row.start < reuse.from || reuse.most_age == 0 ||
      reuse.most_age > gen::kMostIndexReuse)
    return misfit(fmt::format("request {} takes choices up to {} positions old from {} on, at {}",
                              row.request, reuse.most_age, reuse.from, row.start));
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
  for (const plan::PageCopy& copy : plan.window_copies)
    if (copy.from >= info.window_pages || copy.to >= info.window_pages || copy.from == copy.to)
      return misfit(
          fmt::format("copy of window page {} to {} of {}", copy.from, copy.to, info.window_pages));
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
    if (Status fits = check_window(row, info); !fits) return fits;
    if (Status fits = check_states(row, info); !fits) return fits;
    if (Status fits = check_output(row, info); !fits) return fits;
    if (Status fits = check_reuse(row, info); !fits) return fits;
    if (Status fits = check_tokens(row, info, drew_last); !fits) return fits;
  }
  return {};
}

}  // namespace tandem::engine
