#include "app/guard_options.h"

#include <algorithm>

#include "app/command.h"

namespace tandem::app {
namespace {

constexpr const char* kNone = "none";

std::vector<std::string> names_of_guards() {
  std::vector<std::string> names = {kNone};
  for (const chat::GuardSwitch& guard : chat::kGuardSwitches) names.emplace_back(guard.name);
  return names;
}

}  // namespace

void declare(CLI::App& app, GuardOptions& options) {
  comma_list(app.add_option(
                 "--guards", options.on,
                 "Which guards watch over answers (docs/guards.md), or none; requests may differ"))
      ->check(CLI::IsMember(names_of_guards()))
      ->capture_default_str();
  app.add_option("--thinking-budget", options.thinking_budget,
                 "Tokens of thinking after which it is closed; 0: none [no budget]");
  app.add_option("--hesitation-penalty", options.hesitation_penalty,
                 "What words such as \"Wait\" lose of their logits inside thinking; 0: nothing")
      ->check(CLI::Range(0.0F, chat::kMostHesitationPenalty))
      ->capture_default_str();
}

chat::GuardSettings settings(const GuardOptions& options) {
  chat::GuardSettings result;
  for (const chat::GuardSwitch& guard : chat::kGuardSwitches) {
    result.*guard.member = std::ranges::find(options.on, guard.name) != options.on.end();
  }
  result.thinking_budget = options.thinking_budget;
  result.hesitation_penalty = options.hesitation_penalty;
  return result;
}

}  // namespace tandem::app
