#include "chat/thinking_close.h"

namespace tandem::chat {
namespace {

/// Line breaks stand in templates as they are or as escapes.
bool has_either(const std::string& text, const std::string& one, const std::string& other) {
  return text.find(one) != std::string::npos || text.find(other) != std::string::npos;
}

}  // namespace

std::string thinking_close(const text::ModelText& model, const dialect::Dialect& dialect) {
  if (dialect.syntax->owns_answer()) return dialect.syntax->thinking_close();
  if (!model.thinking) return {};
  const std::string& end = model.thinking->end;
  const std::string source = model.chat_template ? model.chat_template->source() : std::string();
  const bool breaks_before = has_either(source, "\n" + end, "\\n" + end);
  const bool breaks_behind = has_either(source, end + "\n\n", end + "\\n\\n");
  return (breaks_before ? "\n" : "") + end + (breaks_behind ? "\n\n" : "");
}

}  // namespace tandem::chat
