// POST /v1/responses and /v1/responses/input_tokens.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "protocol/call.h"
#include "protocol/errors.h"
#include "protocol/generation.h"
#include "protocol/message_rules.h"
#include "protocol/openai/keeping_reply.h"
#include "protocol/openai/response_items.h"
#include "protocol/openai/responses_encoder.h"
#include "protocol/openai/responses_request.h"
#include "protocol/openai/responses_state.h"
#include "protocol/openai/truncation.h"

namespace tandem::protocol::openai {
namespace {

constexpr Wire kResponses{.endpoint = "responses",
                          .id_prefix = "resp_",
                          .parse = parse_responses,
                          .make_encoder =
                              [](AnswerHead head, const WireRequest& parsed, const Options&) {
                                return make_responses_encoder(std::move(head), parsed.notes);
                              },
                          .refuse = error_response};

/// A request with what it goes on with.
struct Asked {
  std::string id;
  WireRequest wire;
  KeptResponse record;  // without a response
  bool store = false;
  std::string conversation;  // that gets its items; empty: none
};

/// An error of a conversation, by the field that names it.
Error about_conversation(Error error) {
  if (error.field == "conversation_id") error.field = "conversation";
  return error;
}

/// What the server keeps that a body names.
Status gather(ResponsesState& state, const std::string& owner, Json& body, KeptInput& kept) {
  kept.offered = true;
  if (const std::string talk = conversation_in(body); !talk.empty()) {
    auto conversation = state.conversations().find(owner, talk);
    if (!conversation) return about_conversation(conversation.error());
    kept.history = std::move(conversation->items);
    kept.field = "conversation";
  } else if (const std::string id = string_in(body, "previous_response_id"); !id.empty()) {
    auto history = state.history(owner, id);
    if (!history) return history.error();
    kept.history = std::move(*history);
  }
  const auto input = body.find("input");
  if (input == body.end()) return {};
  size_t bytes = 0;
  return resolve_references(
      *input, kept.history, kMaxHistoryBytes,
      [&](const std::string& response) { return state.items(owner, response, bytes); });
}

/// What comes under the id of another item cannot become one of the conversation.
void warn_of_clashes(const Json& input, const Json& there, std::vector<chat::Warning>& warnings) {
  for (const size_t place : clashing_items(input, there)) {
    warn(warnings,
         {.code = "item_not_added",
          .message = fmt::format("'input[{}]' has the id {} of another item, which is the "
                                 "one that the conversation keeps",
                                 place, literal(shortened(string_in(input[place], "id"), 80)))});
  }
}

Result<Asked> read(Api& api, const net::Request& request, bool counts = false) {
  const int64_t began = store::unix_microseconds();
  auto body = parse_body(request.body);
  if (!body) return body.error();
  if (counts && !body->contains("input")) (*body)["input"] = Json::array();
  KeptInput kept;
  if (ResponsesState* state = api.responses()) {
    if (const Status done = gather(*state, request.key_id, *body, kept); !done) return done.error();
  }
  const chat::ModelInfo model = api.service().model();
  auto wire = parse_responses(*body, {.model = model, .options = api.options()}, kept);
  if (!wire) return wire.error();
  set_client(api, request, wire->request);
  Asked asked{.id = new_request_id(kResponses.id_prefix),
              .wire = std::move(*wire),
              .record = {},
              .store = false,
              .conversation = conversation_in(*body)};
  const Json& echo = asked.wire.notes["echo"];
  if (echo["truncation"] == "auto") {
    truncate_to_fit(
        [&](const chat::Request& shorter) { return api.service().count_prompt(shorter); },
        model.max_context, asked.wire);
  }
  asked.store = echo["store"] == true;
  if (!asked.store && asked.conversation.empty()) return asked;
  Json input = normal_items((*body)["input"], asked.id);
  if (!asked.conversation.empty()) warn_of_clashes(input, kept.history, asked.wire.warnings);
  const size_t bytes = dump(input).size();
  asked.record = {.input = std::move(input),
                  .previous = string_in(*body, "previous_response_id"),
                  .server = api.store()->server(),
                  .background = echo["background"] == true,
                  .streamed = asked.wire.stream,
                  .began = began,
                  .bytes = bytes};
  return asked;
}

/// Adds what was said to the conversation of a response that came to its end.
Status add_to_conversation(const ResponsesState& state,
                           const std::string& owner,
                           const KeptResponse& record) {
  const std::string id = record.conversation();
  if (id.empty() || !record.has_answer()) return {};
  Json items = Json::array();
  append_items(record, items);
  const auto added = state.conversations().edit(owner, id, [&](Conversation& conversation) {
    add_items(items, conversation);
    return Status();
  });
  return added ? Status() : Status(added.error());
}

/// Writes what is to be kept of a response, and says in it what could not be.
Keep keeping(const ResponsesState& state, std::string owner, Asked asked) {
  return [&state, owner = std::move(owner), record = std::move(asked.record), store = asked.store](
             Json& response, Status possible) mutable {
    std::vector<chat::Warning> warnings;
    record.response = response;
    const Status added = possible ? add_to_conversation(state, owner, record) : possible;
    if (!added && !record.conversation().empty()) {
      warnings.push_back({.code = "not_in_conversation",
                          .message = "the items could not be added to the conversation: " +
                                     added.error().message});
      record.response["warnings"].push_back(encode_warnings(warnings).back());
    }
    const Status put = possible && store ? state.kept().put(owner, record) : possible;
    response = std::move(record.response);
    if (put || !store) return warnings;
    warnings.push_back({.code = "not_stored",
                        .message = "the response could not be kept: " + put.error().message});
    response["store"] = false;
    response["warnings"].push_back(encode_warnings(warnings).back());
    return warnings;
  };
}

/// Starts it on its own, and answers with how it is, or with its events.
void start_background(Api& api, const net::Request& request, const ReplyPtr& reply, Asked asked) {
  ResponsesState& state = *api.responses();
  const std::string id = asked.id;
  const bool stream = std::exchange(asked.wire.stream, true);
  const auto run = std::make_shared<BackgroundRun>(
      state.kept(), request.key_id, std::move(asked.record), api.options().keep_alive);
  if (!asked.conversation.empty()) {
    run->on_answer([&state, owner = request.key_id](const KeptResponse& record) {
      state.kept().later(record.bytes, [&state, owner, record] {
        return add_to_conversation(state, owner, record);
      });
    });
  }
  run->on_gone([&api, id] { api.service().cancel(id); });
  state.runs().add(id, run);
  begin_generation(kResponses, api, request, run, std::move(asked.wire), id);
  if (auto refused = run->refusal()) return reply->send(std::move(*refused));
  const Status settled = state.kept().settle();
  const auto trouble = settled ? run->trouble() : settled.error();
  if (trouble) {
    api.service().cancel(id);
    return reply->send(error_response(*trouble));
  }
  if (stream) return run->watch(reply, 0);
  net::Response response = net::json_response(200, dump(run->record().response));
  response.headers.push_back({"X-Request-Id", id});
  reply->send(std::move(response));
}

}  // namespace

void responses(Api& api, const net::Request& request, const ReplyPtr& reply) {
  auto asked = read(api, request);
  if (!asked) {
    api.metrics().refused(kResponses.endpoint, status_of(asked.error()));
    return reply->send(error_response(asked.error()));
  }
  if (asked->wire.notes["echo"]["background"] == true) {
    return start_background(api, request, reply, std::move(*asked));
  }
  WireRequest wire = std::move(asked->wire);
  const std::string id = asked->id;
  ReplyPtr to = reply;
  if (asked->store || !asked->conversation.empty()) {
    const size_t bytes = asked->record.bytes;
    to = std::make_shared<KeepingReply>(
        reply, api.store()->queue(), api.metrics(), bytes,
        keeping(*api.responses(), request.key_id, std::move(*asked)));
  }
  begin_generation(kResponses, api, request, to, std::move(wire), id);
}

void count_input_tokens(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const auto asked = read(api, request, true);
  const auto tokens =
      asked ? api.service().count_prompt(asked->wire.request) : Result<uint32_t>(asked.error());
  if (!tokens) {
    api.metrics().refused("input_tokens", status_of(tokens.error()));
    return reply->send(error_response(of_responses(tokens.error())));
  }
  reply->send(net::json_response(
      200, dump(Json{{"object", "response.input_tokens"}, {"input_tokens", *tokens}})));
}

}  // namespace tandem::protocol::openai
