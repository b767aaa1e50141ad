// The last prompts with their answers, to tell where a later prompt left them.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gen/request.h"

namespace tandem::replay {

/// Where a prompt is another one than any that is known.
struct Divergence {
  uint32_t token = 0;         // the first that differs from the closest known prompt
  uint32_t known_tokens = 0;  // of that prompt and its answer
};

struct KnownLimits {
  size_t per_owner = 8;                 // prompts of one owner
  size_t max_prompts = 1024;            // of all
  size_t max_tokens = size_t{8} << 20;  // of all
};

/// Thread-safe.
class KnownPrompts {
 public:
  /// One prompt that is known, to add its answer to.
  using Ticket = std::shared_ptr<std::vector<gen::TokenId>>;

  explicit KnownPrompts(KnownLimits limits = {}) : limits_(limits) {}

  struct Added {
    Ticket ticket;
    std::optional<Divergence> divergence;  // unset: it goes on with a known one, or none is known
  };

  /// Takes a prompt and compares it with those of the same owner. It takes the place of one that it
  /// goes on with.
  Added add(const std::string& owner, const std::vector<gen::TokenId>& prompt);

  /// What the answer drew.
  void answered(const Ticket& ticket, const std::vector<gen::TokenId>& tokens);

 private:
  struct Known {
    std::string owner;
    Ticket tokens;
  };

  void trim(const std::string& owner);

  const KnownLimits limits_;
  std::mutex mutex_;
  std::list<Known> known_;  // the last used first
  size_t tokens_ = 0;
};

}  // namespace tandem::replay
