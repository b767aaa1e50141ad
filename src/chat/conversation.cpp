#include "chat/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

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
                                           const Json& messages,
                                           bool continues,
                                           const RenderSettings& settings) {
  context.messages = messages;
  if (continues) {
    Json& content = context.messages.back()["content"];
    content = content.get<std::string>() + kEndMark;
  }
  // Such templates show calls only of messages without text, as OpenAI's wire has them.
  if (settings.chat_template.mentions("['content'] is none")) leave_out_blanks(context.messages);
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

/// What is given to the template: the variables, and the messages, of which forms are made.
struct Forms {
  text::ChatContext context;
  Json messages;
  bool is_empty = false;  // nothing was said
  bool continues = false;
};

Result<Forms> prepare(const Conversation& conversation, const RenderSettings& settings) {
  auto messages =
      plain_messages(conversation.messages, settings.chat_template.mentions("developer"));
  if (!messages) return messages.error();
  Forms out{.context = make_context(conversation, settings), .messages = {}};
  out.is_empty = messages->empty();
  out.continues = conversation.continues_last_message && !out.is_empty;
  const text::ChatTemplate& reader = settings.chat_template;
  if (reader.mentions("message.thinking") && !reader.mentions("reasoning_content")) {
    name_thinking(*messages);
  }
  if (settings.describes_tools != nullptr) {
    *messages =
        with_described_tools(std::move(*messages), conversation.tools, *settings.describes_tools);
    out.context.tools = nullptr;
  }
  out.messages = std::move(*messages);
  return out;
}

}  // namespace

Result<Rendering> render_any(const Conversation& conversation, const RenderSettings& settings) {
  auto forms = prepare(conversation, settings);
  if (!forms) return forms.error();
  std::optional<Error> refusal;
  std::vector<Json> tried;  // few templates want more than the first, which costs no copy
  for (size_t i = 0; i < kMessageForms; ++i) {
    Json form = i == 0 ? std::move(forms->messages) : form_of(tried.front(), i);
    if (std::ranges::find(tried, form) != tried.end()) continue;
    tried.push_back(std::move(form));
    auto prompt = attempt(forms->context, tried.back(), forms->continues, settings);
    if (prompt && *prompt && !forms->is_empty) {
      return Rendering{.text = std::move(**prompt), .form = i};
    }
    if (!prompt && !refusal) refusal = invalid(prompt.error().message);
  }
  if (refusal) return *refusal;
  if (forms->is_empty) return invalid("there are no messages");
  return invalid("the chat template leaves a system message out of the prompt");
}

Result<std::string> render(const Conversation& conversation, const RenderSettings& settings) {
  auto rendered = render_any(conversation, settings);
  if (!rendered) return rendered.error();
  return std::move(rendered->text);
}

Result<std::string> render_form(const Conversation& conversation,
                                const RenderSettings& settings,
                                size_t form) {
  auto forms = prepare(conversation, settings);
  if (!forms) return forms.error();
  if (form >= kMessageForms) return invalid("the messages have no such form");
  if (form != 0) forms->messages = form_of(forms->messages, form);
  auto prompt = attempt(forms->context, forms->messages, forms->continues, settings);
  if (!prompt) return prompt.error();
  if (!*prompt) return invalid("the chat template leaves a system message out of the prompt");
  return std::move(**prompt);
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
