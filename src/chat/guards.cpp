#include "chat/guards.h"

namespace tandem::chat {

const char* name(Guard guard) {
  switch (guard) {
    case Guard::kThinkingBudget:
      return "thinking_budget";
    case Guard::kUnclosedThought:
      return "unclosed_thought";
    case Guard::kRepeatedSpan:
      return "repeated_span";
    case Guard::kToolLoop:
      return "tool_loop";
    case Guard::kHesitation:
      return "hesitation_penalty";
  }
  return "unknown";
}

}  // namespace tandem::chat
