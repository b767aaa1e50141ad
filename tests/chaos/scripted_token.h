// The tokens of a scripted rank.
#pragma once

#include "gen/request.h"

namespace tandem::chaos {

inline constexpr uint32_t kScriptedVocab = 5000;

inline gen::TokenId scripted_token(gen::RequestId id, size_t place) {
  return static_cast<gen::TokenId>((id * 7919 + place * 104729) % kScriptedVocab);
}

}  // namespace tandem::chaos
