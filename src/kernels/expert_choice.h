// Which experts a token takes, and how much of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pool.h"

namespace tandem::kernels {

enum class ExpertScore : uint8_t {
  kSoftmax,  // over all experts
  kSigmoid,
};

/// How families choose.
struct ExpertRouting {
  ExpertScore score = ExpertScore::kSoftmax;
  bool renormalizes = false;  // the weights of a row sum up to one
  float scale = 1;            // of the weights, after that
  /// Experts lie in so many groups of neighbours. Those of all but top_groups count as of score 0
  /// (not less: as DeepSeek's reference has it); a group counts as much as its two best together,
  /// or as its best alone.
  uint32_t groups = 1;
  uint32_t top_groups = 1;
  bool weighs_groups_by_best = false;
  bool leaves_groups_out = false;  // such experts count as less than any score instead
};

struct ExpertChoiceArgs {
  const float* logits = nullptr;  // [rows, experts]
  size_t rows = 0;
  size_t experts = 0;
  size_t top_k = 0;
  ExpertRouting routing = {};
  const float* bias = nullptr;  // [experts], added to scores for the choice alone; null: none
  size_t logits_stride = 0;     // floats from row to row; 0 means experts
  uint32_t* ids = nullptr;      // [rows, top_k], the best first
  float* weights = nullptr;     // [rows, top_k]
};

/// The top_k experts of the best score; of equally good ones those with the higher ids. The same
/// bits at every CPU level, and a row's depend on nothing but the row. The ids of a row differ and
/// are below `experts`, whatever the logits. Requires 1 <= top_k <= experts, and groups of one
/// size, of at least two experts where there are several.
void choose_experts(WorkerPool& pool, const ExpertChoiceArgs& args);

}  // namespace tandem::kernels
