#include "protocol/ollama/request.h"

#include "protocol/answer_form.h"
#include "protocol/message_rules.h"
#include "protocol/ollama/messages.h"
#include "protocol/ollama/options.h"
#include "protocol/openai/chat_tools.h"
#include "protocol/openai/role_mapping.h"
#include "protocol/openai/shared_fields.h"

namespace tandem::protocol::ollama {
namespace {

/// Refuses a field, unless it holds what says nothing: an empty text or list, false or 0.
void refuse_unless_empty(Fields& fields, const char* name) {
  const Json* value = fields.any(name);
  if (value && *value != "" && *value != false && *value != 0 && *value != Json::array()) {
    fields.unsupported(name);
  }
}

/// true, false or an effort.
void read_think(Fields& fields, const ParseContext& context, Json& arguments, WireRequest& out) {
  const Json* think = fields.any("think");
  if (!think) return;
  if (think->is_string() && *think != "") {
    set_effort(think->get<std::string>(), arguments);
    if (*think != "none") arguments["enable_thinking"] = true;
  } else if (think->is_boolean()) {
    arguments["enable_thinking"] = *think;
  } else {
    return fields.refuse_value("think", "must be true, false or an effort such as \"high\"");
  }
  if (*think != false && !context.model.can_think) {
    warn(out.warnings, {.code = "thinking_not_offered",
                        .message = "the model has no thinking that could be switched on"});
  }
}

/// "json", or a JSON schema.
void read_format(Fields& fields, chat::Request& out) {
  const Json* format = fields.any("format");
  if (!format || *format == "") return;
  if (*format == "json") return set_form(fields, "format", json_object_form(), out);
  if (!format->is_object()) {
    return fields.refuse_value("format", R"(must be "json" or a JSON schema)");
  }
  set_form(fields, "format", {.kind = chat::AnswerForm::Kind::kJsonSchema, .schema = *format}, out);
}

/// What both bodies have.
void read_common(Fields& fields, const ParseContext& context, WireRequest& out) {
  read_model(fields, context, out);
  out.stream = fields.boolean("stream").value_or(true);
  read_options(fields, context, out);
  read_format(fields, out.request);
  openai::read_logprobs(fields, context, 0, out.request);
  read_guards(fields, context, out.request.guards);
  fields.accept({"keep_alive", "truncate", "shift"});
}

/// As the conversation's prompt, also for a model without a template.
void set_input(chat::Conversation conversation, const ParseContext& context, WireRequest& out) {
  if (context.model.has_chat_template) {
    out.request.input = std::move(conversation);
  } else {
    out.request.input = chat::RawPrompt{openai::render_plainly(conversation, {})};
  }
}

/// An empty list or text, or not there.
bool is_empty(const Json* field) { return !field || *field == "" || *field == Json::array(); }

/// Reads what is a body's own, and makes the request's input of it and of the conversation, which
/// has what both bodies say.
using ReadOwn = void (*)(Fields& fields,
                         const ParseContext& context,
                         chat::Conversation conversation,
                         WireRequest& out);

Result<WireRequest> parse(std::string_view body, const ParseContext& context, ReadOwn own) {
  const auto json = parse_body(body);
  if (!json) return json.error();
  Fields fields(*json, {}, context.log);
  WireRequest out;
  read_common(fields, context, out);
  chat::Conversation conversation;
  read_think(fields, context, conversation.template_arguments, out);
  own(fields, context, std::move(conversation), out);
  if (const Status ok = finish_fields(fields, context, out); !ok) return ok.error();
  return out;
}

void read_chat(Fields& fields,
               const ParseContext& context,
               chat::Conversation conversation,
               WireRequest& out) {
  conversation.tools = openai::read_functions(fields);
  if (is_empty(fields.any("messages"))) {
    out.notes = kNothing;
    return;
  }
  conversation.messages = read_messages(fields, out.warnings);
  conversation.continues_last_message = ends_with_answer(conversation.messages);
  set_input(std::move(conversation), context, out);
}

void read_prompt(Fields& fields,
                 const ParseContext& context,
                 chat::Conversation conversation,
                 WireRequest& out) {
  const auto prompt = fields.string("prompt", SIZE_MAX).value_or("");
  const auto system = fields.string("system", SIZE_MAX).value_or("");
  const bool raw = fields.boolean("raw").value_or(false);
  for (const char* name : {"suffix", "template", "images", "context", "width", "height", "steps"}) {
    refuse_unless_empty(fields, name);
  }
  if (prompt.empty()) {
    out.notes = kNothing;
  } else if (raw) {
    out.request.input = chat::RawPrompt{prompt};
  } else {
    if (!system.empty()) {
      conversation.messages.push_back(Json{{"role", "system"}, {"content", system}});
    }
    conversation.messages.push_back(Json{{"role", "user"}, {"content", prompt}});
    drop_request_line(conversation.messages);
    set_input(std::move(conversation), context, out);
  }
}

}  // namespace

Result<WireRequest> parse_chat(std::string_view body, const ParseContext& context) {
  return parse(body, context, read_chat);
}

Result<WireRequest> parse_generate(std::string_view body, const ParseContext& context) {
  return parse(body, context, read_prompt);
}

}  // namespace tandem::protocol::ollama
