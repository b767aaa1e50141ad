// StepPlan: what every rank executes in one step. Rank 0 decides; the others replay and never
// decide. Encoded by plan/codec.h; the format is in plan/FORMAT.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gen/request.h"

namespace tandem::plan {

using PageId = uint32_t;
using SlotId = uint32_t;  // of a pool of recurrent state
using gen::RequestId;
using gen::TokenId;

/// The kernels that compute a position's keys and values (DESIGN, promise 1).
enum class NumericClass : uint8_t {
  kChunk,  // prompt positions
  kStep,   // generated positions, also when a resume recomputes many at once
};

/// A token id in a row: the one that the request's row before drew, which rank 0 does not know yet.
/// Such a row has no other token, and its step is issued while the one that draws is in flight.
inline constexpr TokenId kDrawn = -1;

/// How a device draws a token from a row's logits: what sample/sampler.h needs besides them, for a
/// token at position start + tokens.size(). Random numbers are keyed by (seed, choice, position).
struct Draw {
  float temperature = 0;
  float top_p = 1;
  uint32_t top_k = 0;
  float min_p = 0;
  uint64_t seed = 0;
  uint32_t choice = 0;

  bool operator==(const Draw&) const = default;
};

/// How a device may draw this request's tokens, or none when the host must: for penalties, bias,
/// xtc, logprobs, grammars and stop ids that are banned at first. Depends on nothing but the
/// request's settings, so that a request is drawn in one place for its whole life, resumed or not.
std::optional<Draw> draw_of(const gen::Request& request);

/// The settings that a draw stands for: the host draws by them as the device does.
gen::Sampling sampling_of(const Draw& draw);

/// Leaves the recurrent state after the row's first `tokens` tokens in a slot.
struct StateSave {
  uint32_t tokens = 0;
  SlotId slot = 0;

  bool operator==(const StateSave&) const = default;
};

/// Lets a request's generated tokens attend to the blocks of keys that an earlier one chose. A
/// position chooses anew where its block begins, where the answer does, and most_age + 1 positions
/// after the last one that chose; others take that one's list, in each layer for each KV head. So
/// which position chose depends on the request alone, whatever its rows were.
struct IndexReuse {
  uint32_t most_age = 0;  // 1 to gen::kMostIndexReuse
  uint32_t from = 0;      // the answer's first position

  bool operator==(const IndexReuse&) const = default;
};

/// A run of new tokens of one request: a decode token, a prefill chunk or a recomputed answer.
/// A row never mixes classes; two rows of one plan never belong to one request.
struct Row {
  RequestId request = 0;
  NumericClass numeric_class = NumericClass::kChunk;
  uint32_t start = 0;                // position of tokens[0]
  std::vector<TokenId> tokens = {};  // at least one, known; or kDrawn alone
  /// The request's page table: covers positions [0, start + tokens.size()).
  std::vector<PageId> pages = {};
  /// Of layers that see a window, in a pool of their own: covers positions
  /// [window_start, start + tokens.size()). Begins at a multiple of the page, at or before the
  /// first position that tokens[0] sees.
  uint32_t window_start = 0;
  std::vector<PageId> window_pages = {};
  /// Where recurrent layers find the state before tokens[0]; none: nothing came before it.
  std::optional<SlotId> state = {};
  /// In order of their tokens; where a model has such layers the last one is at the row's end.
  std::vector<StateSave> saves = {};
  bool wants_logits = false;             // logits of the last token are needed
  std::optional<Draw> draw = {};         // or the token drawn from them
  std::optional<IndexReuse> reuse = {};  // of rows of generated tokens
  /// What of the row's hidden states is wanted: for a mean their sum over its tokens.
  std::optional<gen::Pooling> pooling = {};

  bool operator==(const Row&) const = default;
};

/// The largest step that is planned unless options say otherwise, and that runners make room for:
/// its tokens, and its rows, each of which may want logits.
inline constexpr uint32_t kStepTokens = 512;
inline constexpr uint32_t kMostRows = 64;

/// Copies a page's keys and values in every layer before the step's rows run (copy on write).
struct PageCopy {
  PageId from = 0;
  PageId to = 0;

  bool operator==(const PageCopy&) const = default;
};

/// Window pages that one request has at once, at most, where its rows hold up to `step_tokens`:
/// what the window and a row cover, a page cut at either end, and the source of a copy. 0 without a
/// window.
constexpr uint64_t most_window_pages(uint64_t window, uint64_t step_tokens, uint64_t page_tokens) {
  if (window == 0) return 0;
  const uint64_t row = step_tokens < page_tokens ? page_tokens : step_tokens;
  return (window - 1 + row) / page_tokens + 3;
}

struct StepPlan {
  uint32_t epoch = 0;     // of the instance's group; a plan of another epoch is refused
  uint64_t sequence = 0;  // 0, 1, 2, … within the epoch
  std::vector<PageCopy> copies = {};
  std::vector<PageCopy> window_copies = {};  // of the pages of layers that see a window
  std::vector<Row> rows = {};                // chunk rows first, then step rows

  bool operator==(const StepPlan&) const = default;
};

}  // namespace tandem::plan
