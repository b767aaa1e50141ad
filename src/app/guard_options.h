// What keeps answers in bounds where requests do not say otherwise.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chat/guards.h"

namespace tandem::app {

struct GuardOptions {
  std::vector<std::string> on = {"repeated_span", "tool_loop"};
  std::optional<uint32_t> thinking_budget;
  float hesitation_penalty = 0;
};

void declare(CLI::App& app, GuardOptions& options);

chat::GuardSettings settings(const GuardOptions& options);

}  // namespace tandem::app
