// What a client of the engine asks for: tokens in, tokens out. No text, no wire format.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tandem::gen {

using TokenId = int32_t;
/// Unique within a head's life; a request with n > 1 is n of these.
using RequestId = uint64_t;

struct LogitBias {
  TokenId id = 0;
  float bias = 0;

  bool operator==(const LogitBias&) const = default;
};

/// A penalty over the last `context` tokens of prompt and answer together; 0 means all of them.
struct Penalty {
  float value = 0;  // off at 0 (and, for repetition, at 1)
  uint32_t context = 0;

  bool operator==(const Penalty&) const = default;
};

/// How a token is drawn from logits. Order and meaning: spec of sample/sampler.h.
struct Sampling {
  float temperature = 0;  // 0: the largest logit, lowest id on a tie; all filters ignored
  float top_p = 1;
  uint32_t top_k = 0;  // 0: off
  float min_p = 0;
  float xtc_probability = 0;
  float xtc_threshold = 0.1F;
  std::vector<TokenId> xtc_exempt = {};  // newline and end-of-text ids, never dropped by xtc
  Penalty repetition = {};
  Penalty presence = {};
  Penalty frequency = {};
  std::vector<LogitBias> logit_bias = {};
  uint64_t seed = 0;    // always set: the head draws one when the client gave none
  uint32_t choice = 0;  // index among n choices; a draw is keyed by (seed, choice, position)

  bool operator==(const Sampling&) const = default;
};

enum class Priority : uint8_t { kNormal, kLow };

/// One vector made of a prompt's hidden states after the final norm: the mean of all positions, or
/// the last one.
enum class Pooling : uint8_t { kMean, kLast };

/// The largest Request::index_reuse.
inline constexpr uint32_t kMostIndexReuse = 48;

/// kAmbiguousLark is Lark of a client, whose rules may read a text in many ways: they are followed
/// less far than others, since that costs the square of what is followed.
enum class GrammarKind : uint8_t { kJsonSchema, kRegex, kLark, kAmbiguousLark };

/// What an answer must be: all of it, to the stop id that ends it. Dialects: as llguidance reads
/// them. Tokens in Lark are <[id]>.
struct Grammar {
  static constexpr size_t kMostBytes = size_t{1} << 20;

  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string source = {};

  bool operator==(const Grammar&) const = default;
};

/// One generation. Invariants: prompt is not empty; every id is below the vocabulary's size.
struct Request {
  RequestId id = 0;
  std::string client = {};  // fairness key: a hash of the API key, else the peer's address
  std::string salt = {};    // prefix reuse happens only between equal salts
  std::vector<TokenId> prompt = {};
  /// A resumed request: answer tokens already delivered, never sent again.
  std::vector<TokenId> emitted = {};
  Sampling sampling = {};
  uint32_t max_tokens =
      std::numeric_limits<uint32_t>::max();  // of the whole answer, emitted ones included
  uint32_t min_tokens = 0;                   // stop ids cannot be drawn before
  /// End-of-text ids: the one drawn is reported and ends the answer.
  std::vector<TokenId> stop_ids = {};
  bool ignore_eos = false;  // stop_ids never end the answer
  /// Unset: none; n: the drawn token's and the n most likely ones'.
  std::optional<uint32_t> logprobs = {};
  Priority priority = Priority::kNormal;
  std::optional<std::chrono::milliseconds> deadline = {};  // of the whole answer, from submission
  /// Positions that an answer's choice of key blocks may be old (plan::IndexReuse). 0: each token
  /// chooses.
  uint32_t index_reuse = 0;
  /// Set: instead of an answer there is one Embedding. max_tokens and sampling do not count.
  std::optional<Pooling> pooling = {};
  /// Needs stop ids that end the answer: nothing else may follow what is complete.
  std::optional<Grammar> grammar = {};

  bool operator==(const Request&) const = default;
};

}  // namespace tandem::gen
