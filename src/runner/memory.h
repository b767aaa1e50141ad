// What a rank will hold, known from the checkpoint's header before anything is loaded.
#pragma once

#include <cstdint>

#include "format/checkpoint.h"
#include "model/arch.h"
#include "plan/step_plan.h"
#include "topology/placement.h"

namespace tandem::runner {

struct MemoryNeed {
  uint64_t weights = 0;      // bytes of this rank's part
  uint64_t workspace = 0;    // activations of the largest step
  uint64_t page = 0;         // keys and values of one page in this rank's layers
  uint64_t window_page = 0;  // the same in those whose pages are given back behind the window
  uint64_t slot = 0;         // a recurrent state of this rank's layers
};

struct MemoryAssumptions {
  uint32_t page_tokens = 32;
  uint32_t step_tokens = plan::kStepTokens;  // of the largest step
  uint32_t element_bytes = 4;                // of activations
  uint32_t kv_bytes = 4;                     // of an element of keys and values
  uint32_t logit_copies = 1;                 // of a step's logits at once
  bool frees_windows = false;                // see model::layer_shapes()
  /// Weights lie as the fast path packs them: numbers as the checkpoint shows them, codes of 3, 5
  /// and 6 bits in 8. Otherwise numbers have element_bytes, and codes their own bits.
  bool is_packed = true;
};

/// Errors: kCorrupt from the header.
Result<MemoryNeed> estimate(const format::Checkpoint& checkpoint,
                            const model::Description& model,
                            const topology::Part& part,
                            const MemoryAssumptions& assumptions);

}  // namespace tandem::runner
