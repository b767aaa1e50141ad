// Where a quantized model may be cut.
#pragma once

#include <cstdint>

#include "format/checkpoint.h"

namespace tandem::format {

/// The least common multiple of the quantization groups of the matrices of which a tensor split
/// cuts the inputs: no cut may fall inside. 1 when nothing is quantized. Errors: those of
/// Checkpoint::quantization.
Result<uint32_t> quantization_group(const Checkpoint& checkpoint);

}  // namespace tandem::format
