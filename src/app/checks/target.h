// The server that is probed, as a client meets it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/client.h"

namespace tandem::app::checks {

using Json = nlohmann::ordered_json;

/// What a check found: it holds, it does not, or it cannot be told here.
struct Verdict {
  enum class State : uint8_t { kOk, kFailed, kSkipped };

  State state = State::kOk;
  std::string detail;
};

Verdict ok(std::string detail);
Verdict failed(std::string detail);
Verdict skipped(std::string detail);
const char* name(Verdict::State state);

struct Answer {
  int status = 0;
  Json body;  // null where it is no JSON
  std::string text;

  /// "status 400: the server's message".
  std::string told() const;
};

struct Stream {
  Answer head;  // its body is empty where the answer was a stream
  std::vector<net::SseEvent> events;
  std::vector<Json> data;  // of the events that hold JSON

  bool is_done() const;  // [DONE] was the last
};

/// A server, and what the check of its models found.
struct Target {
  net::Client client;
  std::string model = {};
  uint64_t context = 0;

  /// Errors: no answer, or none in time.
  Result<Answer> get(const std::string& path) const;
  Result<Answer> post(const std::string& path, const Json& body) const;
  /// Reads to the end of the stream, or to the event that `stop_after` counts.
  Result<Stream> stream(const std::string& path,
                        const Json& body,
                        std::optional<size_t> stop_after = std::nullopt) const;
};

/// What most checks ask, and how much they take for an answer.
inline constexpr const char* kQuestion = "What is the capital of France? Answer in a few words.";
inline constexpr uint32_t kTokens = 64;

/// One question in the shape of chat completions and Messages.
Json body_of(const Target& target, const char* question, uint32_t max_tokens);

}  // namespace tandem::app::checks
