// Events of an answer as an encoder streams them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "protocol/answer.h"

namespace tandem::protocol {

/// What one event of a choice adds to the stream; behind an end nothing else.
inline std::string streamed(AnswerEncoder& encoder, const chat::Event& event) {
  const uint32_t choice = event.choice;
  if (const auto* delta = std::get_if<chat::Delta>(&event.body)) {
    return encoder.delta(choice, *delta);
  }
  if (const auto* call = std::get_if<chat::CallStarted>(&event.body)) {
    return encoder.call_started(choice, *call);
  }
  if (const auto* piece = std::get_if<chat::CallArguments>(&event.body)) {
    return encoder.call_arguments(choice, *piece);
  }
  if (const auto* ended = std::get_if<chat::CallEnded>(&event.body)) {
    return encoder.call_ended(choice, *ended);
  }
  return encoder.end(choice, std::get<chat::End>(event.body));
}

/// A stream of one choice, closed behind its end.
inline std::string streamed(AnswerEncoder& encoder,
                            const std::vector<chat::Event>& events,
                            const chat::Usage& usage) {
  std::string out;
  for (const chat::Event& event : events) {
    out += streamed(encoder, event);
    if (event.is_last()) out += encoder.close(usage);
  }
  return out;
}

}  // namespace tandem::protocol
