// How byte-level tokenizers split text before merging, by the names that GGUF files use.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace tandem::text {

/// Parts of a tokenizer.json.
struct Pretokenization {
  nlohmann::json normalizer;     // null for none
  nlohmann::json pre_tokenizer;  // ends in byte-level spelling
  bool ignore_merges = false;    // a piece that is a token stays whole
};

/// kUnsupported names an unknown rule and lists the known ones.
Result<Pretokenization> pretokenization(const std::string& name);

}  // namespace tandem::text
