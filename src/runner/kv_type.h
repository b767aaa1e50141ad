// Which type keys and values have on the fast path.
#pragma once

#include <cstdint>

#include "format/checkpoint.h"
#include "tensor/context.h"

namespace tandem::runner {

enum class KvType : uint8_t {
  kAuto,  // float32 for a checkpoint in float32, else float16: finer than the weights
  kF16,
  kF32,
};

/// float16 or float32. The same on every rank, since it depends on the checkpoint alone.
tensor::mx::Dtype kv_dtype(const format::Checkpoint& checkpoint, KvType type);

}  // namespace tandem::runner
