#include "runner/kv_type.h"

#include "format/float_type.h"

namespace tandem::runner {

tensor::mx::Dtype kv_dtype(const format::Checkpoint& checkpoint, KvType type) {
  namespace mx = tensor::mx;
  if (type == KvType::kF16) return mx::float16;
  if (type == KvType::kF32) return mx::float32;
  return format::is_in_float32(checkpoint) ? mx::float32 : mx::float16;
}

}  // namespace tandem::runner
