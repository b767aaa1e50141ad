// What a protocol asks of a model's hidden states: a vector for each input.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "chat/request.h"

namespace tandem::chat {

struct EmbeddingRequest {
  std::string id = {};      // public name, such as "embd-…"; unique among running requests
  std::string client = {};  // see gen::Request
  std::vector<RawPrompt> inputs = {};  // at least one
  gen::Pooling pooling = gen::Pooling::kMean;
  std::optional<uint32_t> dimensions = {};  // the first so many numbers; unset: all
  gen::Priority priority = gen::Priority::kNormal;
  std::optional<std::chrono::milliseconds> deadline = {};  // of each input, from its submission
};

/// Tokens of inputs that are done, and of all.
struct EmbeddingProgress {
  uint64_t done = 0;
  uint64_t total = 0;
};

/// One for each input, in their order, each of length 1.
using Vectors = std::vector<std::vector<float>>;

/// Vectors or an Error are a request's last event; an Error of kCancelled when its owner did.
using EmbeddingEvent = std::variant<EmbeddingProgress, Vectors, Error>;

/// Receives a request's events in order, on threads of the service. Must not block or throw.
using EmbeddingSink = std::function<void(EmbeddingEvent)>;

/// The vector's first `dimensions` numbers, if that many are asked for, at length 1. kInvalid,
/// field "dimensions": more than there are. kInternal: no finite length.
Result<std::vector<float>> unit_vector(std::vector<float> values,
                                       const std::optional<uint32_t>& dimensions);

}  // namespace tandem::chat
