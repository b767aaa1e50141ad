// What becomes of scores before their softmax, for any vector type.
#pragma once

#include "kernels/attention_span.h"
#include "kernels/vec_math.h"

namespace tandem::kernels {

/// Scores of whole vectors [begin, end) become softcap * tanh(score / softcap), in bits; 0: none
/// do.
template <class V>
[[gnu::always_inline]] inline void cap_scores(float* begin, float* end, float softcap) {
  if (softcap <= 0.0f) return;
  const V limit = V::all(softcap), bits = V::all(softcap * kBitsPerNat);
  for (float* at = begin; at < end; at += V::kLanes)
    (bits * vec_tanh(V::load(at) / limit)).store(at);
}

}  // namespace tandem::kernels
