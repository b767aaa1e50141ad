// Value heads of qwen35 and qwen35moe: the converter puts the first of each key head's before the
// second of each, models want a key head's together.
#pragma once

#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

/// Conversions of all tensors of layers that attend by the gated delta rule.
std::vector<GgufConversion> untiled_heads();

}  // namespace tandem::format::gguf_arch
