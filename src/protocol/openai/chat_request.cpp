#include "protocol/openai/chat_request.h"

#include <fmt/format.h>

#include "protocol/openai/chat_tools.h"
#include "protocol/openai/forced_output.h"
#include "protocol/openai/messages.h"
#include "protocol/openai/role_mapping.h"
#include "protocol/openai/shared_fields.h"

namespace tandem::protocol::openai {
namespace {

bool read_continuation(Fields& fields, const Json& messages) {
  const bool wanted = fields.boolean("continue_final_message").value_or(false);
  const auto adds = fields.boolean("add_generation_prompt");
  if (wanted && adds.value_or(false)) {
    fields.refuse("continue_final_message", "excludes add_generation_prompt");
  }
  if (!wanted && adds && !*adds) {
    fields.unsupported("add_generation_prompt", "false without continue_final_message");
  }
  const bool possible = !messages.empty() && messages.back().value("role", "") == "assistant";
  if (wanted && !possible) {
    fields.refuse("continue_final_message", "needs the last message to be the assistant's");
  }
  return wanted;
}

void refuse_unsupported(Fields& fields) {
  for (const char* name : {"audio", "web_search_options", "functions", "function_call"}) {
    fields.unsupported(name);
  }
  if (const Json* modalities = fields.array("modalities")) {
    if (*modalities != Json::array({"text"})) fields.unsupported("modalities", "other than text");
  }
  fields.accept({"prediction", "verbosity"});
}

}  // namespace

void read_conversation(Fields& fields, const ParseContext& context, WireRequest& out) {
  chat::Conversation conversation;
  conversation.messages = read_messages(fields, out.warnings);
  ChatTools tools = read_tools(fields, out.warnings);
  conversation.tools = std::move(tools.functions);
  conversation.text_rules = std::move(tools.text_rules);
  out.notes = Json(tools.custom);
  conversation.parallel_calls = fields.boolean("parallel_tool_calls").value_or(true);
  read_tool_choice(fields, conversation);
  read_template_arguments(fields, conversation.template_arguments);
  read_guards(fields, context, out.request.guards);
  conversation.continues_last_message = read_continuation(fields, conversation.messages);
  const RoleMapping roles = read_role_mapping(fields);
  if (fields.error()) return;
  if (context.model.has_chat_template) {
    out.request.input = std::move(conversation);
  } else {
    if (conversation.calls.is_required) {
      return fields.unsupported("tool_choice", "that forces a call without a chat template");
    }
    if (!conversation.tools.is_null()) {
      out.warnings.push_back({.code = "tools_not_in_template",
                              .message = "the model has no chat template to show tools in"});
    }
    out.request.input = chat::RawPrompt{render_plainly(conversation, roles)};
  }
}

Result<WireRequest> parse_chat(std::string_view body, const ParseContext& context) {
  const auto json = parse_body(body);
  if (!json) return json.error();
  Fields fields(*json, {}, context.log);
  WireRequest out;
  read_shared(fields, context, out);
  read_logprobs(fields, context, -1, out.request);  // mlx-lm's clients say -1
  read_conversation(fields, context, out);
  refuse_unsupported(fields);
  if (const Status ok = finish_fields(fields, context, out); !ok) return ok.error();
  return out;
}

}  // namespace tandem::protocol::openai
