#include "chat/thinking_close.h"

namespace tandem::chat {
namespace {

/// Line breaks stand in templates as they are or as escapes.
bool has_either(const std::string& text, const std::string& one, const std::string& other) {
  return text.find(one) != std::string::npos || text.find(other) != std::string::npos;
}

std::string source_of(const text::ModelText& model) {
  return model.chat_template ? model.chat_template->source() : std::string();
}

}  // namespace

std::string behind_thinking(const text::ModelText& model) {
  if (!model.thinking) return {};
  const std::string& end = model.thinking->end;
  return has_either(source_of(model), end + "\n\n", end + "\\n\\n") ? "\n\n" : "";
}

std::string thinking_close(const text::ModelText& model, const dialect::Dialect& dialect) {
  if (dialect.syntax->owns_answer()) return dialect.syntax->thinking_close();
  if (!model.thinking) return {};
  const std::string& end = model.thinking->end;
  const bool breaks_before = has_either(source_of(model), "\n" + end, "\\n" + end);
  return (breaks_before ? "\n" : "") + end + behind_thinking(model);
}

}  // namespace tandem::chat
