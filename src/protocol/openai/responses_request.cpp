#include "protocol/openai/responses_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "protocol/message_rules.h"
#include "protocol/openai/forced_output.h"
#include "protocol/openai/responses_input.h"
#include "protocol/openai/shared_fields.h"

namespace tandem::protocol::openai {
namespace {

void read_text_format(Fields& fields, chat::Request& out) {
  const Json* text = fields.object("text");
  if (!text) return;
  Fields inner(*text, "text.");
  if (const Json* format = inner.object("format")) {
    read_format(*format, "text.format", fields, out);
  }
  if (inner.error()) fields.keep(*inner.error());
}

/// Whether the response is to be kept.
struct Keeping {
  bool store = false;
  bool background = false;
};

/// A response in the background could not be fetched if it were not kept: who asks for one and says
/// nothing about `store` wants it.
Keeping read_keeping(Fields& fields, const KeptInput& kept, std::vector<chat::Warning>& warnings) {
  const auto store = fields.boolean("store");
  Keeping out{.store = store.value_or(false),
              .background = fields.boolean("background").value_or(false)};
  if (out.background && store == false) {
    fields.refuse("background", "needs 'store': the response could not be fetched");
  }
  if (out.background && !kept.offered) {
    fields.unsupported("background", "on a server that keeps nothing");
  }
  if (out.store && !kept.offered) {
    warn(warnings, {.code = "not_stored", .message = "this server keeps no responses"});
  }
  out.store = kept.offered && (out.store || out.background);
  return out;
}

void read_previous(Fields& fields, const KeptInput& kept) {
  const auto id = fields.string("previous_response_id", 512);
  if (!id || kept.offered) return;
  fields.keep({ErrorCode::kNotFound,
               fmt::format("no response is kept here, {} neither: send the whole conversation",
                           literal(shortened(*id, 80))),
               "previous_response_id"});
}

void read_conversation(Fields& fields, const Json& body, const KeptInput& kept) {
  if (!fields.has("conversation")) return;
  if (conversation_in(body).empty()) {
    return fields.refuse_value("conversation", R"(must be an id, or {"id": …})");
  }
  if (fields.has("previous_response_id")) {
    return fields.refuse("conversation", "cannot be used together with 'previous_response_id'");
  }
  if (!kept.offered) fields.unsupported("conversation", "on a server that keeps nothing");
}

/// Fields that change nothing here, or are not offered.
void read_rest(Fields& fields) {
  fields.unsupported("prompt");
  check_metadata(fields);
  // Counts calls of tools that the server runs: there are none.
  fields.integer("max_tool_calls", 1, std::numeric_limits<int32_t>::max());
  fields.accept({"client_metadata", "user", "prompt_cache_key", "prompt_cache_retention",
                 "service_tier", "safety_identifier", "stream_options", "top_logprobs"});
  const auto truncation = fields.string("truncation", 32);
  if (truncation && *truncation != "auto" && *truncation != "disabled") {
    fields.refuse_value("truncation", R"(must be "auto" or "disabled")");
  }
}

/// Fields that the response repeats.
Json make_echo(const Json& body, const chat::Conversation& conversation, Keeping keeping) {
  const auto given = [&](const char* name, Json otherwise) {
    const auto found = body.find(name);
    return found == body.end() || found->is_null() ? std::move(otherwise) : *found;
  };
  Json echo;
  echo["background"] = keeping.background;
  const std::string talk = conversation_in(body);
  echo["conversation"] = talk.empty() ? Json(nullptr) : Json{{"id", talk}};
  echo["instructions"] = given("instructions", nullptr);
  echo["max_output_tokens"] = given("max_output_tokens", nullptr);
  echo["max_tool_calls"] = given("max_tool_calls", nullptr);
  echo["metadata"] = given("metadata", Json::object());
  echo["parallel_tool_calls"] = conversation.parallel_calls;
  echo["previous_response_id"] = given("previous_response_id", nullptr);
  echo["reasoning"] = given("reasoning", Json{{"effort", nullptr}, {"summary", nullptr}});
  echo["store"] = keeping.store;
  echo["temperature"] = given("temperature", nullptr);
  echo["tool_choice"] = given("tool_choice", "auto");
  echo["top_p"] = given("top_p", nullptr);
  echo["truncation"] = given("truncation", "disabled");
  return echo;
}

/// Whether reasoning items are to have `encrypted_content`.
bool asks_for_handles(Fields& fields) {
  const Json* include = fields.array("include");
  return include && std::ranges::find(*include, "reasoning.encrypted_content") != include->end();
}

}  // namespace

std::string conversation_in(const Json& body) {
  const auto given = body.find("conversation");
  if (given == body.end()) return {};
  const Json id = given->is_object() ? given->value("id", Json()) : *given;
  return id.is_string() ? id.get<std::string>() : std::string();
}

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

Result<WireRequest> parse_responses(const Json& body,
                                    const ParseContext& context,
                                    const KeptInput& kept) {
  Fields fields(body, {}, context.log);
  WireRequest out;
  read_generation(fields, context, out);
  out.request.gives_handle = asks_for_handles(fields);
  const auto most = fields.integer("max_output_tokens", 1, std::numeric_limits<int32_t>::max());
  if (most) out.request.max_tokens = static_cast<uint32_t>(*most);
  chat::Conversation conversation;
  ResponsesTools tools;
  if (const Json* given = fields.array("tools")) tools.add(fields, *given, "tools", out.warnings);
  conversation.messages = read_input(fields, tools, kept.history, kept.field, out.warnings);
  if (!tools.functions.empty()) conversation.tools = std::move(tools.functions);
  conversation.text_rules = std::move(tools.text_rules);
  read_tool_choice(fields, conversation);
  conversation.parallel_calls = fields.boolean("parallel_tool_calls").value_or(true);
  read_template_arguments(fields, conversation.template_arguments);
  read_guards(fields, context, out.request.guards);
  read_text_format(fields, out.request);
  const Keeping keeping = read_keeping(fields, kept, out.warnings);
  read_previous(fields, kept);
  read_conversation(fields, body, kept);
  read_rest(fields);
  if (const Status ok = finish_fields(fields, context, out); !ok) return ok.error();
  out.notes = make_notes(make_echo(body, conversation, keeping), tools.names);
  out.notes["encrypted"] = out.request.gives_handle;
  out.request.input = std::move(conversation);
  return out;
}

Result<WireRequest> parse_responses(std::string_view body, const ParseContext& context) {
  const auto json = parse_body(body);
  if (!json) return json.error();
  return parse_responses(*json, context, {});
}

}  // namespace tandem::protocol::openai
