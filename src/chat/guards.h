// What changes the course of an answer besides the model, and what a request says about it.
#pragma once

#include <cstdint>
#include <optional>

namespace tandem::chat {

/// What acted on an answer.
enum class Guard : uint8_t {
  kThinkingBudget,   // thinking was closed, since it had reached its budget
  kUnclosedThought,  // thinking was closed, since the model ended inside it without an answer
  kRepeatedSpan,     // the answer was ended, since it went on and on with the same words
  kToolLoop,         // the conversation's last calls and their results are the same, three times
  kHesitation,       // words of hesitation were made unlikely in thinking
};

/// As wires and metrics call it.
const char* name(Guard guard);

inline constexpr float kMostHesitationPenalty = 100;

/// Of a request. All are off unless asked for.
struct GuardSettings {
  std::optional<uint32_t> thinking_budget = {};  // tokens; 0: no thinking
  float hesitation_penalty = 0;  // taken off the logits of words of hesitation inside thinking
  bool unclosed_thought = false;
  bool repeated_span = false;
  bool tool_loop = false;
  bool steer_tool_loop = false;  // and tell the model that it is in one

  bool forbids_thinking() const { return thinking_budget == 0U; }

  bool operator==(const GuardSettings&) const = default;
};

/// Those that are switched on and off, by their names.
struct GuardSwitch {
  const char* name;
  bool GuardSettings::* member;
};

inline constexpr GuardSwitch kGuardSwitches[] = {
    {"repeated_span", &GuardSettings::repeated_span},
    {"tool_loop", &GuardSettings::tool_loop},
    {"steer_tool_loop", &GuardSettings::steer_tool_loop},
    {"unclosed_thought", &GuardSettings::unclosed_thought},
};

}  // namespace tandem::chat
