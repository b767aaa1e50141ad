// What the engine reports about a request. Every accepted request gets exactly one last event.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/error.h"
#include "gen/request.h"

namespace tandem::gen {

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0;

  bool operator==(const TokenLogprob&) const = default;
};

/// A drawn token. logprob and top are filled only when the request asked for logprobs: natural logs
/// after bias and penalties, before temperature and filters; top sorted from the most likely.
struct Token {
  TokenId id = 0;
  float logprob = 0;
  std::vector<TokenLogprob> top = {};

  bool operator==(const Token&) const = default;
};

/// Pages are reserved and the first chunk is planned.
struct Started {
  uint32_t cached_tokens = 0;  // prompt tokens whose keys and values were reused

  bool operator==(const Started&) const = default;
};

struct Prefilled {
  uint32_t done = 0;   // prompt tokens computed or reused so far
  uint32_t total = 0;  // prompt tokens

  bool operator==(const Prefilled&) const = default;
};

struct Tokens {
  std::vector<Token> tokens = {};

  bool operator==(const Tokens&) const = default;
};

enum class FinishReason : uint8_t { kStop, kLength };

/// Last event: the answer is complete. A stop id drawn was in the Tokens before.
struct Finished {
  FinishReason reason = FinishReason::kStop;

  bool operator==(const Finished&) const = default;
};

/// Last event: the request cannot go on.
struct Failed {
  Error error;

  bool operator==(const Failed&) const = default;
};

/// Last event: cancelled by its owner.
struct Cancelled {
  bool operator==(const Cancelled&) const = default;
};

/// What a request with pooling asks for: not normalised, [hidden size]. Finished follows.
struct Embedding {
  std::vector<float> values = {};

  bool operator==(const Embedding&) const = default;
};

struct Event {
  RequestId request = 0;
  std::variant<Started, Prefilled, Tokens, Finished, Failed, Cancelled, Embedding> body;

  bool is_last() const {
    return std::holds_alternative<Finished>(body) || std::holds_alternative<Failed>(body) ||
           std::holds_alternative<Cancelled>(body);
  }
  bool operator==(const Event&) const = default;
};

}  // namespace tandem::gen
