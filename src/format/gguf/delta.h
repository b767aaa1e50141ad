// What qwen3next, qwen35 and qwen35moe share: layers that attend by the gated delta rule.
#pragma once

#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

/// The architecture's tables; norms hold the 1 that published checkpoints leave out, which is what
/// models read beside convolutions of this shape.
GgufArchitecture delta_architecture(std::string_view name, std::string_view model_type);

/// Fields and names of experts, beside one that every token takes, weighed by a gate.
void add_delta_experts(GgufArchitecture& architecture);

}  // namespace tandem::format::gguf_arch
