#include "chat/conversation.h"

#include <fmt/format.h>

#include <utility>

#include "chat/message_forms.h"
#include "chat/model_dialect.h"

namespace tandem::chat {
namespace {

/// Stands at the end of the message to continue; no text has it.
constexpr const char* kEndMark = "\uE0C0\uE0C1";

Error invalid(std::string message) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message), .field = "messages"};
}

text::ChatContext make_context(const Conversation& conversation, const RenderSettings& settings) {
  text::ChatContext context;
  context.arguments["enable_thinking"] = settings.has_thinking;
  if (settings.default_arguments.is_object()) context.arguments.update(settings.default_arguments);
  if (conversation.template_arguments.is_object()) {
    context.arguments.update(conversation.template_arguments);
  }
  context.tools = conversation.tools;
  context.add_generation_prompt = !conversation.continues_last_message;
  return context;
}

/// Renders one form; nullopt when a system message is left out of the prompt.
Result<std::optional<std::string>> attempt(text::ChatContext& context,
                                           Json messages,
                                           bool continues,
                                           const RenderSettings& settings) {
  if (continues) {
    Json& content = messages.back()["content"];
    content = content.get<std::string>() + kEndMark;
  }
  context.messages = std::move(messages);
  auto prompt = settings.chat_template.render(context, settings.now);
  if (!prompt) return prompt.error();
  if (!has_late_system_texts(*prompt, context.messages)) return std::optional<std::string>();
  if (continues) {
    const size_t end = prompt->rfind(kEndMark);
    if (end == std::string::npos) return invalid("the chat template cannot continue a message");
    prompt->resize(end);
  }
  return std::optional<std::string>(std::move(*prompt));
}

}  // namespace

Result<std::string> render(const Conversation& conversation, const RenderSettings& settings) {
  auto messages =
      plain_messages(conversation.messages, settings.chat_template.mentions("developer"));
  if (!messages) return messages.error();
  text::ChatContext context = make_context(conversation, settings);
  if (settings.describes_tools != nullptr) {
    *messages =
        with_described_tools(std::move(*messages), conversation.tools, *settings.describes_tools);
    context.tools = nullptr;
  }
  const bool continues = conversation.continues_last_message && !messages->empty();
  std::optional<Error> refusal;
  for (const Json& form : forms_of(*messages)) {
    auto prompt = attempt(context, form, continues, settings);
    if (prompt && *prompt && !messages->empty()) return std::move(**prompt);
    if (!prompt && !refusal) refusal = invalid(prompt.error().message);
  }
  if (refusal) return *refusal;
  if (messages->empty()) return invalid("there are no messages");
  return invalid("the chat template leaves a system message out of the prompt");
}

bool ends_in_thinking(std::string_view prompt,
                      const text::ThinkingMarkers& markers,
                      bool continues) {
  const size_t start = prompt.rfind(markers.start);
  if (start == std::string_view::npos) return false;
  const std::string_view rest = prompt.substr(start + markers.start.size());
  if (continues) return rest.find(markers.end) == std::string_view::npos;
  return rest.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace tandem::chat
