#include "plan/figures.h"

#include <algorithm>

namespace tandem::plan {

EngineTotals& EngineTotals::operator+=(const EngineTotals& more) {
  steps += more.steps;
  rows += more.rows;
  answer_tokens += more.answer_tokens;
  prompt_tokens += more.prompt_tokens;
  reused_tokens += more.reused_tokens;
  computed_tokens += more.computed_tokens;
  pauses += more.pauses;
  window_pages_left += more.window_pages_left;
  step_time += more.step_time;
  step_counts.resize(std::max(step_counts.size(), more.step_counts.size()));
  for (size_t i = 0; i < more.step_counts.size(); ++i) step_counts[i] += more.step_counts[i];
  return *this;
}

}  // namespace tandem::plan
