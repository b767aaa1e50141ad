#include "plan/step_plan.h"

namespace tandem::plan {
namespace {

bool has_penalties(const gen::Sampling& s) {
  const bool repeats = s.repetition.value != 0 && s.repetition.value != 1;
  return repeats || s.presence.value != 0 || s.frequency.value != 0 || !s.logit_bias.empty();
}

}  // namespace

std::optional<Draw> draw_of(const gen::Request& request) {
  const gen::Sampling& s = request.sampling;
  const bool is_greedy = !(s.temperature > 0);
  const bool bans = request.min_tokens > 0 && !request.ignore_eos && !request.stop_ids.empty();
  const bool drops_top = !is_greedy && s.xtc_probability > 0;
  if (bans || drops_top || request.logprobs || request.grammar || has_penalties(s)) return {};
  if (is_greedy) return Draw{};
  return Draw{.temperature = s.temperature,
              .top_p = s.top_p,
              .top_k = s.top_k,
              .min_p = s.min_p,
              .seed = s.seed,
              .choice = s.choice};
}

gen::Sampling sampling_of(const Draw& draw) {
  return {.temperature = draw.temperature,
          .top_p = draw.top_p,
          .top_k = draw.top_k,
          .min_p = draw.min_p,
          .seed = draw.seed,
          .choice = draw.choice};
}

}  // namespace tandem::plan
