// POST /v1/completions.
#include "protocol/call.h"
#include "protocol/errors.h"
#include "protocol/handlers.h"
#include "protocol/openai/completion_encoder.h"
#include "protocol/openai/completion_request.h"

namespace tandem::protocol::openai {

void completions(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  auto wire = parse_completion(request.body, {.model = model, .options = api.options()});
  if (!wire) {
    api.metrics().refused("completions", status_of(wire.error()));
    return reply->send(error_response(wire.error()));
  }
  const std::string id = new_request_id("cmpl-");
  AnswerHead head{.id = id,
                  .model = wire->model,
                  .fingerprint = api.options().fingerprint,
                  .created = unix_seconds(),
                  .include_usage = wire->include_usage,
                  .logprobs = wire->request.logprobs.has_value()};
  std::string echo = std::move(wire->echo);
  Call::start(api, request, reply,
              {.id = id,
               .endpoint = "completions",
               .wire = std::move(*wire),
               .encoder = make_completion_encoder(std::move(head), std::move(echo))});
}

}  // namespace tandem::protocol::openai
