// What a rank says of itself for observers: status and metrics. Nothing is decided by it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace tandem::plan {

/// What a rank holds.
struct Memory {
  uint64_t weight_bytes = 0;    // of its part of the model; 0 before it has loaded
  uint64_t cache_bytes = 0;     // of its pool of pages, whether used or not
  uint64_t resident_bytes = 0;  // of the process, as the system counts it

  bool operator==(const Memory&) const = default;
};

/// How the pages or slots of a pool stand.
struct PoolFigures {
  uint32_t free = 0;
  uint32_t cached = 0;      // kept for reuse
  uint32_t referenced = 0;  // by requests

  uint32_t total() const { return free + cached + referenced; }
  bool operator==(const PoolFigures&) const = default;
};

/// What an engine has done since its process began, over all epochs.
struct EngineTotals {
  uint64_t steps = 0;
  uint64_t rows = 0;               // of all steps
  uint64_t answer_tokens = 0;      // drawn
  uint64_t prompt_tokens = 0;      // computed or reused
  uint64_t reused_tokens = 0;      // positions found in the cache
  uint64_t computed_tokens = 0;    // positions computed, also again after a pause
  uint64_t pauses = 0;             // of requests, for want of pages
  uint64_t window_pages_left = 0;  // given up behind the windows of requests
  std::chrono::nanoseconds step_time{0};
  std::vector<uint64_t> step_counts = {};  // steps by their time, under base's token_times()

  EngineTotals& operator+=(const EngineTotals& more);
  bool operator==(const EngineTotals&) const = default;
};

/// Rank 0's engine: its totals, and how it stands now.
struct EngineFigures {
  uint32_t waiting = 0;  // requests that never ran yet
  uint32_t paused = 0;
  uint32_t running = 0;
  PoolFigures pages = {};
  PoolFigures window_pages = {};  // of layers that see a window; none where there are none
  PoolFigures states = {};        // slots of recurrent layers; none where there are none
  EngineTotals totals = {};

  bool operator==(const EngineFigures&) const = default;
};

/// After each Beat.
struct Figures {
  static constexpr uint8_t kKind = 10;
  Memory memory = {};
  std::optional<EngineFigures> engine = {};  // of rank 0, once it has loaded

  bool operator==(const Figures&) const = default;
};

}  // namespace tandem::plan
