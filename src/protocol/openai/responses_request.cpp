#include "protocol/openai/responses_request.h"

#include <fmt/format.h>

#include <limits>

#include "protocol/message_rules.h"
#include "protocol/openai/responses_input.h"

namespace tandem::protocol::openai {
namespace {

/// Whether the tools may be shown to the model.
bool may_call(Fields& fields) {
  const Json* choice = fields.any("tool_choice");
  if (!choice || *choice == "auto") return true;
  if (*choice == "none") return false;
  if (choice->is_object() || *choice == "required") {
    fields.unsupported("tool_choice", "that forces a call");
  } else {
    fields.refuse_value("tool_choice", R"(must be "auto" or "none")");
  }
  return true;
}

void read_reasoning(Fields& fields, Json& template_arguments) {
  const Json* reasoning = fields.object("reasoning");
  if (!reasoning) return;
  Fields inner(*reasoning, "reasoning.");
  if (const auto effort = inner.string("effort", 32)) set_effort(*effort, template_arguments);
  if (inner.error()) fields.keep(*inner.error());
}

void read_text_format(Fields& fields) {
  const Json* text = fields.object("text");
  if (!text) return;
  Fields inner(*text, "text.");
  if (const Json* format = inner.object("format")) {
    if (format->value("type", Json("text")) != "text")
      inner.unsupported("format", "other than text");
  }
  if (inner.error()) fields.keep(*inner.error());
}

/// What needs responses that are kept.
void refuse_state(Fields& fields) {
  if (const auto id = fields.string("previous_response_id", 512)) {
    fields.keep({ErrorCode::kNotFound,
                 fmt::format("no response is kept here, {} neither: send the whole conversation",
                             literal(shortened(*id, 80))),
                 "previous_response_id"});
  }
  if (fields.boolean("background").value_or(false)) fields.unsupported("background");
  fields.unsupported("conversation");
  fields.unsupported("prompt");
  fields.accept({"store", "include", "metadata", "client_metadata", "user", "prompt_cache_key",
                 "prompt_cache_retention", "service_tier", "safety_identifier", "stream_options",
                 "max_tool_calls", "top_logprobs"});
}

void read_truncation(Fields& fields, std::vector<chat::Warning>& warnings) {
  if (fields.string("truncation", 32) == "auto") {
    warn(warnings, {.code = "truncation_not_offered",
                    .message = "a conversation that is too long is refused, not truncated"});
  }
}

/// Fields that the response repeats.
Json make_echo(const Json& body, const chat::Conversation& conversation) {
  const auto given = [&](const char* name, Json otherwise) {
    const auto found = body.find(name);
    return found == body.end() || found->is_null() ? std::move(otherwise) : *found;
  };
  Json echo;
  echo["max_output_tokens"] = given("max_output_tokens", nullptr);
  echo["metadata"] = given("metadata", Json::object());
  echo["parallel_tool_calls"] = conversation.parallel_calls;
  echo["reasoning"] = given("reasoning", Json{{"effort", nullptr}, {"summary", nullptr}});
  echo["temperature"] = given("temperature", nullptr);
  echo["tool_choice"] = given("tool_choice", "auto");
  echo["top_p"] = given("top_p", nullptr);
  return echo;
}

}  // namespace

Json make_notes(Json echo, const ToolNames& names) {
  Json list = Json::array();
  for (const auto& [seen, tool] : names) {
    list.push_back(Json::array({seen, tool.name, tool.name_space, tool.custom}));
  }
  return Json{{"echo", std::move(echo)}, {"names", std::move(list)}};
}

ToolNames names_in(const Json& notes) {
  ToolNames names;
  for (const Json& entry : notes["names"]) {
    names[entry[0]] = {.name = entry[1], .name_space = entry[2], .custom = entry[3]};
  }
  return names;
}

Result<WireRequest> parse_responses(std::string_view body, const ParseContext& context) {
  const auto json = parse_body(body);
  if (!json) return json.error();
  Fields fields(*json);
  WireRequest out;
  read_generation(fields, context, out);
  const auto most = fields.integer("max_output_tokens", 1, std::numeric_limits<int32_t>::max());
  if (most) out.request.max_tokens = static_cast<uint32_t>(*most);
  chat::Conversation conversation;
  ResponsesTools tools;
  if (const Json* given = fields.array("tools")) tools.add(fields, *given, "tools", out.warnings);
  conversation.messages = read_input(fields, tools, out.warnings);
  if (may_call(fields) && !tools.functions.empty()) {
    conversation.tools = std::move(tools.functions);
  }
  conversation.parallel_calls = fields.boolean("parallel_tool_calls").value_or(true);
  read_template_arguments(fields, conversation.template_arguments);
  read_reasoning(fields, conversation.template_arguments);
  read_text_format(fields);
  read_truncation(fields, out.warnings);
  refuse_state(fields);
  if (const Status ok = finish_fields(fields, context, out); !ok) return ok.error();
  out.notes = make_notes(make_echo(*json, conversation), tools.names);
  out.request.input = std::move(conversation);
  return out;
}

}  // namespace tandem::protocol::openai
