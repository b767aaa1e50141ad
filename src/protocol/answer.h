// How one wire writes an answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "chat/event.h"
#include "chat/service.h"
#include "net/reply.h"
#include "protocol/json.h"

namespace tandem::protocol {

/// A part of an answer.
struct Block {
  enum class Kind : uint8_t { kText, kThinking, kCall };

  Kind kind = Kind::kText;
  std::string text;         // of a call: its arguments, as JSON
  std::string id;           // of a call
  std::string name;         // of a call
  bool is_complete = true;  // of a call: false where it was closed for the model
};

/// One choice, whole.
struct Answer {
  std::vector<Block> blocks;  // in the order of their writing; neighbours are of different kinds
  std::vector<chat::LogprobEntry> logprobs;
  chat::End end;

  /// Takes the next event of the choice.
  void add(const chat::Event& event);

  /// All text, or all thinking.
  std::string joined(Block::Kind kind) const;
  bool has_calls() const;
};

/// What every object of one answer says.
struct AnswerHead {
  std::string id;
  std::string model;
  std::string fingerprint;  // left out when empty
  int64_t created = 0;      // Unix seconds
  bool include_usage = false;
  bool logprobs = false;
  std::vector<chat::Warning> warnings = {};
  const Clock* clock = nullptr;  // for wires that tell how long it took; outlives the request
  std::string turn_handle = {};  // by which a client may name this answer (replay/handle.h)
};

/// Writes the events of one request for one client. Calls come one at a time.
class AnswerEncoder {
 public:
  virtual ~AnswerEncoder() = default;

  /// Before everything else, once the request is accepted. What it gives begins a stream.
  virtual std::string accepted(uint32_t prompt_tokens);

  /// Once, before the first part of the answer, streamed or not.
  virtual void began() {}

  // Streamed: bytes of server-sent events (or what stream_headers() say); may be empty.
  virtual std::string delta(uint32_t choice, const chat::Delta& delta) = 0;
  // Tool calls come on wires that have tools only.
  virtual std::string call_started(uint32_t choice, const chat::CallStarted& call);
  virtual std::string call_arguments(uint32_t choice, const chat::CallArguments& piece);
  virtual std::string call_ended(uint32_t choice, const chat::CallEnded& call);
  virtual std::string end(uint32_t choice, const chat::End& end) = 0;
  /// After the last choice's end.
  virtual std::string close(const chat::Usage& total) = 0;
  /// Instead of what would have come: the request failed.
  virtual std::string failed(const Error& error);
  /// Nothing to show yet: at each progress of the prompt, and whenever nothing was written for a
  /// while. `silence`: since the last event that had something to show, or since the submission.
  virtual std::string waiting(const chat::Progress* progress, std::chrono::milliseconds silence);

  /// Not streamed: the body.
  virtual std::string whole(const std::vector<Answer>& answers, const chat::Usage& total) = 0;
  virtual net::Response refusal(const Error& error);
  virtual net::Headers stream_headers() const;
  /// Of both kinds of answers, besides X-Request-Id.
  virtual net::Headers headers() const { return {}; }
};

/// As the OpenAI wire and lists of requests call it.
const char* name(chat::FinishReason reason);

/// What else is to be said of an answer's end: the names of the guards that acted, and
/// "cut_off_call" where it was cut off in a call. Null when there is nothing.
Json finish_detail(const chat::End& end);

/// [{code, message}]
Json encode_warnings(const std::vector<chat::Warning>& warnings);

/// Over all choices: the prompt once, the least cached, the sum of what was drawn.
chat::Usage total_usage(const std::vector<chat::Usage>& choices);

}  // namespace tandem::protocol
