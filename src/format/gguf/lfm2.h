// What LFM2 and its version with experts share.
#pragma once

#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

std::vector<GgufName> lfm2_names();
Status complete_lfm2(const GgufMetadata& metadata, nlohmann::json& config);

}  // namespace tandem::format::gguf_arch
