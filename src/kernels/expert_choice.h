// Which experts a token takes, and how much of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pool.h"

namespace tandem::kernels {

struct ExpertChoiceArgs {
  const float* logits = nullptr;  // [rows, experts]
  size_t rows = 0;
  size_t experts = 0;
  size_t top_k = 0;
  bool renormalizes = false;  // the weights of a row sum up to one
  size_t logits_stride = 0;   // floats from row to row; 0 means experts
  uint32_t* ids = nullptr;    // [rows, top_k], the most probable first
  float* weights = nullptr;   // [rows, top_k]
};

/// Softmax over all experts, then the top_k most probable; of equally probable ones those with the
/// higher ids. The same bits at every CPU level, and a row's depend on nothing but the row. The ids
/// of a row differ and are below `experts`, whatever the logits. Requires 1 <= top_k <= experts.
void choose_experts(WorkerPool& pool, const ExpertChoiceArgs& args);

}  // namespace tandem::kernels
