// What a dialect's parser finds in an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

namespace tandem::dialect {

enum class Channel : uint8_t { kText, kThinking };

struct Text {
  Channel channel = Channel::kText;
  std::string text;
};

/// Markup that is not delivered.
struct Markup {};

/// Calls count from 0 in an answer. Until its CallEnded, only the call's arguments follow.
struct CallStarted {
  uint32_t call = 0;
  std::string id;  // the model's own; empty when its dialect has none
  std::string name;
};

/// A piece of a call's arguments. All pieces together are one JSON object.
struct CallArguments {
  uint32_t call = 0;
  std::string json;
};

struct CallEnded {
  uint32_t call = 0;
  bool complete = true;  // false: the model did not write it to its end, or not well
};

/// What began as a call is delivered as text, wholly or from here on.
struct Misfit {};

/// Positions count bytes of the answer: what the event was made of.
struct Event {
  std::variant<Text, Markup, CallStarted, CallArguments, CallEnded, Misfit> body;
  size_t begin = 0;
  size_t end = 0;
};

}  // namespace tandem::dialect
