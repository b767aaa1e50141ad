#include "format/float_type.h"

namespace tandem::format {
namespace {

/// Whether a tensor is a projection of a layer, or the scales of one.
bool is_projection(std::string_view name) {
  return name.find("_proj.") != std::string_view::npos &&
         (name.ends_with(".weight") || name.ends_with(".scales"));
}

}  // namespace

bool is_in_float32(const Checkpoint& checkpoint) {
  bool has_halves = false, has_float_norms = false;
  for (const std::string& name : checkpoint.names()) {
    const bool is_norm = name.ends_with("norm.weight");
    if (!is_norm && !is_projection(name)) continue;
    const auto tensor = checkpoint.describe(name);
    if (!tensor) continue;
    const bool is_float = tensor->dtype == Dtype::kF32;
    if (is_float && !is_norm) return true;
    has_float_norms |= is_float;
    has_halves |= !is_norm && (tensor->dtype == Dtype::kF16 || tensor->dtype == Dtype::kBF16);
  }
  return has_float_norms && !has_halves;
}

}  // namespace tandem::format
