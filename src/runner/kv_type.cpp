#include "runner/kv_type.h"

#include <algorithm>

namespace tandem::runner {
namespace {

/// Whether a tensor is a projection of a layer, or the scales of one.
bool is_projection(std::string_view name) {
  return name.find("_proj.") != std::string_view::npos &&
         (name.ends_with(".weight") || name.ends_with(".scales"));
}

}  // namespace

tensor::mx::Dtype kv_dtype(const format::Checkpoint& checkpoint, KvType type) {
  namespace mx = tensor::mx;
  if (type == KvType::kF16) return mx::float16;
  if (type == KvType::kF32) return mx::float32;
  const std::vector<std::string> names = checkpoint.names();
  const bool is_f32 = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    if (!is_projection(name)) return false;
    const auto tensor = checkpoint.describe(name);
    return tensor && tensor->dtype == format::Dtype::kF32;
  });
  return is_f32 ? mx::float32 : mx::float16;
}

}  // namespace tandem::runner
