// How one wire writes an answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/event.h"

namespace tandem::protocol {

/// One choice, whole.
struct Answer {
  std::string text;
  std::string thinking;
  std::vector<chat::LogprobEntry> logprobs;
  chat::End end;
};

/// Writes the events of one request for one client. Calls come one at a time.
class AnswerEncoder {
 public:
  virtual ~AnswerEncoder() = default;

  // Streamed: bytes of server-sent events; may be empty.
  virtual std::string delta(uint32_t choice, const chat::Delta& delta) = 0;
  virtual std::string end(uint32_t choice, const chat::End& end) = 0;
  /// After the last choice's end.
  virtual std::string close(const chat::Usage& total) = 0;

  /// Not streamed: the body.
  virtual std::string whole(const std::vector<Answer>& answers, const chat::Usage& total) = 0;
};

/// Over all choices: the prompt once, the least cached, the sum of what was drawn.
chat::Usage total_usage(const std::vector<chat::Usage>& choices);

}  // namespace tandem::protocol
