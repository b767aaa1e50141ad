// What clients are told about a model before its ranks are ready.
#pragma once

#include <cstdint>
#include <string>

#include "chat/service.h"
#include "format/checkpoint.h"

namespace tandem::app {

/// Sizes from the checkpoint's header, with the defaults that the ranks have too; `context` is the
/// user's bound, 0 for none. Where the header's sizes cannot be read they stay 0: the ranks refuse
/// such a model by the field's name.
chat::ModelInfo model_info(const format::Checkpoint& checkpoint, uint32_t context);

/// What to say when the user's bound is above what the model was made for; empty when it is not.
std::string context_notice(const chat::ModelInfo& info, uint32_t context);

}  // namespace tandem::app
