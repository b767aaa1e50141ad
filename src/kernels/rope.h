// Rotary position embedding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pool.h"

namespace tandem::kernels {

/// Fills cosine and sine [tokens, pairs] of the angles position[t] * inverse_frequency[p]. Computed
/// once a step and used by every layer with the same frequencies.
void rope_table(WorkerPool& pool,
                const uint32_t* positions,
                size_t tokens,
                const float* inverse_frequencies,
                size_t pairs,
                float* cosine,
                float* sine);

struct RopeArgs {
  float* x = nullptr;  // [tokens, heads, head_dim], rotated in place
  size_t tokens = 0;
  size_t heads = 0;
  size_t head_dim = 0;
  size_t token_stride = 0;   // floats from token to token; 0 means heads * head_dim
  size_t pairs = 0;          // rotated pairs: the first 2 * pairs values of a head; the rest stay
  bool interleaved = false;  // pairs are (2i, 2i+1) instead of (i, i + pairs)
  const float* cosine = nullptr;  // [tokens, pairs], from rope_table
  const float* sine = nullptr;
  float scale = 1.0f;  // multiplies the rotated values (YaRN)
};

void rope(WorkerPool& pool, const RopeArgs& args);

}  // namespace tandem::kernels
