// What the model says, as text. One stream carries all choices of a request.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "chat/guards.h"
#include "dialect/event.h"

namespace tandem::chat {

struct TokenText {
  std::string bytes;  // the token's own bytes; may be part of a character
  float logprob = 0;
};

/// A drawn token with the likeliest ones at its place, sorted from the most likely.
struct LogprobEntry {
  TokenText token;
  std::vector<TokenText> top;
};

/// Prompt tokens computed or reused so far. Only before the first text of a choice.
struct Progress {
  uint32_t done = 0;
  uint32_t total = 0;
  uint32_t cached = 0;  // of those done: reused
};

using dialect::Channel;

/// A piece of the answer: whole UTF-8 characters, never part of a stop string or of a thinking
/// marker. `logprobs` covers the tokens that completed this piece, when asked for; a piece may have
/// logprobs and no text.
struct Delta {
  Channel channel = Channel::kText;
  std::string text;
  std::vector<LogprobEntry> logprobs;
};

/// A tool call begins. Between it and its CallEnded nothing else of the choice comes but its
/// arguments, and deltas without text. `call` counts the calls of a choice from 0.
struct CallStarted {
  uint32_t call = 0;
  std::string id;
  std::string name;
};

/// A piece of a call's arguments: whole UTF-8 characters. All pieces together are one JSON value.
struct CallArguments {
  uint32_t call = 0;
  std::string json;
};

struct CallEnded {
  uint32_t call = 0;
  bool is_complete = true;  // false: closed for the model, which did not write it to its end
};

/// kToolCalls: the answer ended by itself, and there are calls in it.
enum class FinishReason : uint8_t { kStop, kLength, kToolCalls };

struct Usage {
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;      // of the prompt: keys and values reused
  uint32_t completion_tokens = 0;  // drawn, the end-of-text token included
  uint32_t reasoning_tokens = 0;   // of the completion: inside thinking
};

/// Last event of a choice.
struct End {
  FinishReason reason = FinishReason::kStop;
  std::string stop_text;  // the stop string that matched, empty when none
  Usage usage;
  uint32_t broken_calls = 0;  // that could not be made valid: delivered as text, or closed early
  std::vector<Guard> guards = {};  // that acted, each once
  /// The answer was cut off in a call: it was closed for the model, or left out if it had no name
  /// yet.
  bool cut_in_call = false;
};

/// Last event of a choice that could not be completed. kCancelled when its owner cancelled it.
struct Failed {
  Error error;
  Usage usage;
};

struct Event {
  uint32_t choice = 0;
  std::variant<Progress, Delta, CallStarted, CallArguments, CallEnded, End, Failed> body;

  bool is_last() const {
    return std::holds_alternative<End>(body) || std::holds_alternative<Failed>(body);
  }
};

}  // namespace tandem::chat
