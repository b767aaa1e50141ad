// POST /v1/responses and /v1/responses/input_tokens.
#include <utility>

#include "protocol/call.h"
#include "protocol/errors.h"
#include "protocol/generation.h"
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
};

std::string string_in(const Json& body, const char* name) {
  const auto found = body.find(name);
  return found != body.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// What the server keeps that a body names.
Status gather(ResponsesState& state, const std::string& owner, Json& body, KeptInput& kept) {
  kept.offered = true;
  if (const std::string id = string_in(body, "previous_response_id"); !id.empty()) {
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
  Asked asked{.id = new_request_id(kResponses.id_prefix), .wire = std::move(*wire), .record = {}};
  const Json& echo = asked.wire.notes["echo"];
  if (echo["truncation"] == "auto") {
    truncate_to_fit(
        [&](const chat::Request& shorter) { return api.service().count_prompt(shorter); },
        model.max_context, asked.wire);
  }
  if (echo["store"] == false) return asked;
  Json input = normal_items((*body)["input"], asked.id);
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

/// Starts it on its own, and answers with how it is, or with its events.
void start_background(Api& api, const net::Request& request, const ReplyPtr& reply, Asked asked) {
  ResponsesState& state = *api.responses();
  const std::string id = asked.id;
  const bool stream = std::exchange(asked.wire.stream, true);
  const auto run = std::make_shared<BackgroundRun>(
      state.kept(), request.key_id, std::move(asked.record), api.options().keep_alive);
  run->on_gone([&api, id] { api.service().cancel(id); });
  state.runs().add(id, run);
  begin_generation(kResponses, api, request, run, std::move(asked.wire), id);
  if (auto refused = run->refusal()) return reply->send(std::move(*refused));
  state.kept().settle();
  if (const auto trouble = run->trouble()) {
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
  const Json& echo = asked->wire.notes["echo"];
  if (echo["background"] == true) {
    return start_background(api, request, reply, std::move(*asked));
  }
  ReplyPtr to = reply;
  if (echo["store"] == true) {
    to = std::make_shared<KeepingReply>(reply, api.responses()->kept(), api.metrics(),
                                        request.key_id, std::move(asked->record));
  }
  begin_generation(kResponses, api, request, to, std::move(asked->wire), asked->id);
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
