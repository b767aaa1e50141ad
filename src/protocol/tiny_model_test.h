// The model that tests of the wires stand before.
#pragma once

#include "chat/service.h"

namespace tandem::protocol {

inline const chat::ModelInfo kTinyModel{.id = "org/tiny",
                                        .max_context = 4096,
                                        .native_context = 8192,
                                        .max_output = 2048,
                                        .vocab = 1000,
                                        .created = 7,
                                        .has_chat_template = true};

}  // namespace tandem::protocol
