#include "protocol/anthropic/messages_request.h"

#include "protocol/answer_form.h"
#include "protocol/anthropic/content.h"
#include "protocol/anthropic/tools.h"
#include "protocol/message_rules.h"

namespace tandem::protocol::anthropic {
namespace {

/// {"type": "json_schema", "schema"}
void read_format(const Json& format, const std::string& field, Fields& fields, chat::Request& out) {
  Fields inner(format, field + ".");
  if (inner.string("type", 64) != "json_schema") {
    inner.refuse("type", R"(must be "json_schema")");
  }
  read_schema(inner, "schema", fields, field, out);
}

/// {effort, format}
void read_output_config(Fields& fields, Json& template_arguments, WireRequest& out) {
  const Json* config = fields.object("output_config");
  if (!config) return;
  Fields inner(*config, "output_config.");
  if (const auto effort = inner.string("effort", 32)) {
    // Templates know three levels at most.
    const bool above = *effort == "xhigh" || *effort == "max";
    if (!template_arguments.contains("reasoning_effort")) {
      template_arguments["reasoning_effort"] = above ? "high" : *effort;
    }
  }
  if (const Json* format = inner.object("format")) {
    read_format(*format, "output_config.format", fields, out.request);
  }
  if (inner.error()) fields.keep(*inner.error());
}

/// No conversation is held here. Who goes on with one is told that it is lost, on which the SDK
/// sends it whole.
void read_thread(Fields& fields) {
  const Json* thread = fields.object("thread");
  if (!thread) return;
  Fields inner(*thread, "thread.");
  if (inner.string("type", 32) == "continue") {
    fields.keep(
        {ErrorCode::kNotFound, "this server holds no conversations: send all messages", "thread"});
  }
  if (inner.error()) fields.keep(*inner.error());
}

void read_the_rest(Fields& fields) {
  if (const Json* servers = fields.array("mcp_servers"); servers && !servers->empty()) {
    fields.unsupported("mcp_servers");
  }
  for (const char* name : {"compaction", "container"}) fields.unsupported(name);
  fields.accept({"metadata", "context_management", "cache_control", "service_tier", "betas",
                 "anthropic_version", "inference_geo", "speed", "diagnostics", "fallbacks",
                 "billing_policy", "user_profile_id", "workspace_id"});
}

}  // namespace

Result<WireRequest> parse_messages(std::string_view body, const ParseContext& context) {
  const auto json = parse_body(body);
  if (!json) return json.error();
  Fields fields(*json, {}, context.log);
  WireRequest out;
  read_thread(fields);
  read_generation(fields, context, out);
  read_stop(fields, "stop_sequences", context, out.request.stop);
  chat::Conversation conversation;
  conversation.messages = read_messages(fields, out.warnings);
  read_tools(fields, conversation, out.warnings);
  read_template_arguments(fields, conversation.template_arguments);
  read_guards(fields, context, out.request.guards);
  read_output_config(fields, conversation.template_arguments, out);
  if (const Json* format = fields.object("output_format")) {  // an older place for it
    read_format(*format, "output_format", fields, out.request);
  }
  conversation.continues_last_message = ends_with_answer(conversation.messages);
  read_the_rest(fields);
  if (const Status ok = finish_fields(fields, context, out); !ok) return ok.error();
  out.request.input = std::move(conversation);
  out.request.gives_handle = true;
  return out;
}

}  // namespace tandem::protocol::anthropic
