// What clients are told about a model before its ranks are ready.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "chat/service.h"
#include "format/checkpoint.h"

namespace tandem::app {

/// Family and sizes from a checkpoint's config, with the defaults that the ranks have too;
/// `context` is the user's bound, 0 for none. Where the config's sizes cannot be read they stay 0:
/// the ranks refuse such a model by the field's name.
chat::ModelInfo model_info(const nlohmann::json& config, uint32_t context);

/// The same with the kind and size of its files.
chat::ModelInfo model_info(const format::Checkpoint& checkpoint, uint32_t context);

/// What to say when the user's bound is above what the model was made for; empty when it is not.
std::string context_notice(const chat::ModelInfo& info, uint32_t context);

}  // namespace tandem::app
