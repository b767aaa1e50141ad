// POST /v1/messages and /v1/messages/count_tokens.
#include "protocol/anthropic/errors.h"
#include "protocol/anthropic/messages_encoder.h"
#include "protocol/anthropic/messages_request.h"
#include "protocol/call.h"
#include "protocol/generation.h"

namespace tandem::protocol::anthropic {
namespace {

Result<uint32_t> count(Api& api, const net::Request& request) {
  const chat::ModelInfo model = api.service().model();
  auto parsed = parse_messages(request.body, {.model = model, .options = api.options()});
  if (!parsed) return parsed.error();
  set_client(api, request, parsed->request);
  return api.service().count_prompt(parsed->request);
}

}  // namespace

void messages(Api& api, const net::Request& request, const ReplyPtr& reply) {
  static constexpr Wire kWire{
      .endpoint = "messages",
      .id_prefix = "msg_",
      .parse = parse_messages,
      .make_encoder = [](AnswerHead head, const WireRequest&,
                         const Options&) { return make_messages_encoder(std::move(head)); },
      .refuse = error_response};
  start_generation(kWire, api, request, reply);
}

void count_tokens(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const auto tokens = count(api, request);
  if (tokens) return reply->send(net::json_response(200, dump(Json{{"input_tokens", *tokens}})));
  api.metrics().refused("count_tokens", status_of(tokens.error()));
  reply->send(error_response(tokens.error()));
}

}  // namespace tandem::protocol::anthropic
