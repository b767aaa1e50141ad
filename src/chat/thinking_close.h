// How thinking is closed in a model's place.
#pragma once

#include <string>

#include "dialect/dialect.h"
#include "text/checkpoint_text.h"

namespace tandem::chat {

/// The line breaks that the model's template writes behind the marker that ends thinking.
std::string behind_thinking(const text::ModelText& model);

/// What stands between a thought and the answer: the marker, with the line breaks around it that
/// the model's template writes. Empty when the model marks no thinking.
std::string thinking_close(const text::ModelText& model, const dialect::Dialect& dialect);

}  // namespace tandem::chat
