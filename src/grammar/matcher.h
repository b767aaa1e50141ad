// Matcher: a constraint over the bridge's masks.
#pragma once

#include <cstdint>

#include "gen/constraint.h"
#include "text/bridge.h"

namespace tandem::grammar {

class Matcher final : public gen::Constraint {
 public:
  /// `logits`: entries of a logits row.
  Matcher(text::bridge::MatcherHandle handle, uint32_t logits);

  Status take(std::span<const gen::TokenId> tokens) override;
  Result<gen::TokenMask> allowed() override;

  /// How many parts of rules the last mask followed: its work.
  size_t followed() const { return text::bridge::followed(*handle_); }

 private:
  text::bridge::MatcherHandle handle_;
  size_t words_;
};

}  // namespace tandem::grammar
