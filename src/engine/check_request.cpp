#include <cmath>

#include "engine/core.h"
#include "gen/check_index_reuse.h"

namespace tandem::engine {
namespace {

Error invalid(std::string message, std::string field) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message), .field = std::move(field)};
}

Status check_ids(std::span<const gen::TokenId> ids, uint32_t vocab, const char* field) {
  for (const gen::TokenId id : ids) {
    if (id < 0 || static_cast<uint32_t>(id) >= vocab) {
      return invalid(fmt::format("token id {} is outside the vocabulary of {}", id, vocab), field);
    }
  }
  return {};
}

Status check_sampling(const gen::Sampling& sampling) {
  const auto range = [](float value, float low, float high, const char* field) -> Status {
    if (value >= low && value <= high) return {};
    return invalid(fmt::format("{} must be from {} to {}, got {}", field, low, high, value), field);
  };
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const Status& status :
       {range(sampling.temperature, 0, kLargest, "temperature"),
        range(sampling.top_p, 0, 1, "top_p"), range(sampling.min_p, 0, 1, "min_p"),
        range(sampling.xtc_probability, 0, 1, "xtc_probability"),
        range(sampling.xtc_threshold, 0, 1, "xtc_threshold"),
        range(sampling.repetition.value, 0, kLargest, "repetition_penalty"),
        range(sampling.presence.value, -kLargest, kLargest, "presence_penalty"),
        range(sampling.frequency.value, -kLargest, kLargest, "frequency_penalty")}) {
    if (!status) return status;
  }
  for (const gen::LogitBias& bias : sampling.logit_bias) {
    if (std::isnan(bias.bias)) return invalid("logit_bias must be a number", "logit_bias");
  }
  return {};
}

/// Of a request without an answer.
Status check_pooling(const gen::Request& request, const gen::Limits& limits) {
  if (!request.emitted.empty() || request.index_reuse > 0 || request.grammar)
    return invalid("an embedding has no answer to resume, bind, or choose keys for", "pooling");
  if (request.prompt.size() > limits.max_context) {
    return Error{.code = ErrorCode::kTooLarge,
                 .message = fmt::format("the prompt has {} tokens, at most {} fit",
                                        request.prompt.size(), limits.max_context),
                 .field = "prompt"};
  }
  return check_ids(request.prompt, limits.vocab, "prompt");
}

Status check_grammar(const gen::Request& request, bool has_constraints) {
  if (!has_constraints) {
    return Error{ErrorCode::kUnsupported, "this model's answers cannot be bound by a grammar",
                 "grammar"};
  }
  if (request.stop_ids.empty() || request.ignore_eos) {
    return invalid("a grammar needs an end-of-text token that ends the answer", "grammar");
  }
  if (request.grammar->source.size() <= gen::Grammar::kMostBytes) return {};
  return invalid(fmt::format("the grammar has {} bytes, more than {}",
                             request.grammar->source.size(), gen::Grammar::kMostBytes),
                 "grammar");
}

}  // namespace

Status check_request(const gen::Request& request, const gen::Limits& limits, bool has_constraints) {
  if (request.prompt.empty()) return invalid("the prompt is empty", "prompt");
  if (request.pooling) return check_pooling(request, limits);
  if (request.prompt.size() >= limits.max_context) {
    return Error{.code = ErrorCode::kTooLarge,
                 .message = fmt::format("the prompt has {} tokens, at most {} fit beside an answer",
                                        request.prompt.size(), limits.max_context - 1),
                 .field = "prompt"};
  }
  if (Status status = check_ids(request.prompt, limits.vocab, "prompt"); !status) return status;
  if (Status status = check_ids(request.emitted, limits.vocab, "emitted"); !status) return status;
  if (Status status = gen::check_index_reuse(request.index_reuse, limits); !status) return status;
  if (request.grammar) {
    if (Status status = check_grammar(request, has_constraints); !status) return status;
  }
  return check_sampling(request.sampling);
}

}  // namespace tandem::engine
