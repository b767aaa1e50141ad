// LocalService: from a conversation or a raw prompt to token ids.
#include <utility>

#include "chat/conversation.h"
#include "chat/guard_tool_loop.h"
#include "chat/local_service.h"
#include "chat/thinking_close.h"

namespace tandem::chat {
namespace {

Error bad_prompt(std::string message, std::string field) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message), .field = std::move(field)};
}

}  // namespace

Result<LocalService::Prompt> LocalService::make_prompt(const Request& request,
                                                       bool is_counted) const {
  if (const auto* conversation = std::get_if<Conversation>(&request.input)) {
    return render_prompt(request, *conversation, is_counted);
  }
  return raw_prompt(std::get<RawPrompt>(request.input));
}

RenderSettings LocalService::render_settings(const Conversation& conversation) const {
  return {.chat_template = *text_.chat_template,
          .default_arguments = options_.template_arguments,
          .has_thinking = text_.thinking.has_value(),
          .describes_tools = hides_tools(conversation, text_) ? &dialect_ : nullptr,
          .now = options_.local_time()};
}

Status LocalService::check_template() const {
  if (text_.chat_template != nullptr) return {};
  return Error{.code = ErrorCode::kUnsupported,
               .message = "the model has no chat template; ask for a completion of a prompt",
               .field = "messages"};
}

Result<std::string> LocalService::render(const Conversation& conversation) const {
  if (const Status has = check_template(); !has) return has.error();
  return chat::render(conversation, render_settings(conversation));
}

Result<LocalService::Prompt> LocalService::render_prompt(const Request& request,
                                                         const Conversation& asked,
                                                         bool is_counted) const {
  if (const Status has = check_template(); !has) return has.error();
  const bool may_not_think = request.guards.forbids_thinking();
  Conversation conversation = asked;
  if (may_not_think) conversation.template_arguments["enable_thinking"] = false;
  const uint32_t loop = loop_of(request);
  if (loop > 0 && request.guards.steer_tool_loop) {
    conversation.messages = steered(std::move(conversation.messages), loop);
  }
  auto rendered =
      replay_.prompt(conversation, render_settings(conversation), request.salt, is_counted);
  if (!rendered) return rendered.error();
  bool in_thinking = text_.thinking && ends_in_thinking(rendered->text, *text_.thinking,
                                                        conversation.continues_last_message);
  if (in_thinking && may_not_think) {
    rendered->open_further(thinking_close(text_, dialect_));
    in_thinking = false;
  }
  Prompt prompt{.ids = {}, .is_conversation = true, .in_thinking = in_thinking};
  auto ids = rendered->encode(*text_.tokenizer, prompt.spans);
  if (!ids) return ids.error();
  if (ids->empty()) return bad_prompt("the chat template makes an empty prompt of it", "messages");
  prompt.ids = std::move(*ids);
  prompt.text = std::move(rendered->text);
  prompt.start = std::move(rendered->start);
  return prompt;
}

TurnRecorder::Settings LocalService::recording(const Request& request, Prompt& prompt) const {
  if (request.ignore_eos) prompt.start.reset();
  const auto* conversation = std::get_if<Conversation>(&request.input);
  return {.memory = options_.memory,
          .start = std::move(prompt.start),
          .id = request.id,
          .cuts_calls = conversation != nullptr && !conversation->parallel_calls,
          .outlives = request.gives_handle,
          .stop_ids = text_.eos,
          .tokenizer = text_.tokenizer,
          .known = known_};
}

std::optional<Divergence> LocalService::divergence(const Request& request,
                                                   const Prompt& prompt,
                                                   TurnRecorder::Settings& recording) const {
  auto added = known_->add(request.salt + '\0' + request.client, prompt.ids);
  recording.ticket = std::move(added.ticket);
  const auto* conversation = std::get_if<Conversation>(&request.input);
  if (!added.divergence || conversation == nullptr) return std::nullopt;
  const size_t offset =
      offset_of(added.divergence->token, prompt.ids, prompt.spans, *text_.tokenizer);
  const size_t message = message_at(offset, prompt.text, conversation->messages);
  Divergence out{.message = static_cast<uint32_t>(message),
                 .role = {},
                 .reusable_tokens = added.divergence->token,
                 .known_tokens = added.divergence->known_tokens};
  if (message < conversation->messages.size()) {
    out.role = conversation->messages[message].value("role", "");
  }
  return out;
}

Result<LocalService::Prompt> LocalService::raw_prompt(const RawPrompt& raw) const {
  Prompt prompt;
  if (const auto* ids = std::get_if<std::vector<gen::TokenId>>(&raw.prompt)) {
    prompt.ids = *ids;
  } else {
    auto encoded = text_.tokenizer->encode(std::get<std::string>(raw.prompt), true);
    if (!encoded) return bad_prompt(encoded.error().message, "prompt");
    prompt.ids = std::move(*encoded);
  }
  if (prompt.ids.empty()) return bad_prompt("the prompt is empty", "prompt");
  if (const Status known = check_ids(prompt.ids, "prompt"); !known) return known.error();
  return prompt;
}

}  // namespace tandem::chat
