// POST /v1/chat/completions.
#include "protocol/call.h"
#include "protocol/errors.h"
#include "protocol/handlers.h"
#include "protocol/openai/chat_encoder.h"
#include "protocol/openai/chat_request.h"

namespace tandem::protocol::openai {

void chat_completions(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  auto wire = parse_chat(request.body, {.model = model, .options = api.options()});
  if (!wire) {
    api.metrics().refused("chat", status_of(wire.error()));
    return reply->send(error_response(wire.error()));
  }
  const std::string id = new_request_id("chatcmpl-");
  AnswerHead head{.id = id,
                  .model = wire->model,
                  .fingerprint = api.options().fingerprint,
                  .created = unix_seconds(),
                  .include_usage = wire->include_usage,
                  .logprobs = wire->request.logprobs.has_value()};
  Call::start(api, request, reply,
              {.id = id,
               .endpoint = "chat",
               .wire = std::move(*wire),
               .encoder = make_chat_encoder(std::move(head))});
}

}  // namespace tandem::protocol::openai
