// POST /api/chat and /api/generate.
#include <memory>
#include <utility>

#include "protocol/errors.h"
#include "protocol/generation.h"
#include "protocol/ollama/encoder.h"
#include "protocol/ollama/errors.h"
#include "protocol/ollama/request.h"

namespace tandem::protocol::ollama {
namespace {

template <Shape kShape>
std::unique_ptr<AnswerEncoder> encoder_of(AnswerHead head, const WireRequest&, const Options&) {
  return make_encoder(std::move(head), kShape);
}

constexpr Wire kChat{.endpoint = "ollama_chat",
                     .id_prefix = "chat-",
                     .parse = parse_chat,
                     .make_encoder = encoder_of<Shape::kMessage>,
                     .refuse = error_response};
constexpr Wire kGenerate{.endpoint = "ollama_generate",
                         .id_prefix = "gen-",
                         .parse = parse_generate,
                         .make_encoder = encoder_of<Shape::kResponse>,
                         .refuse = error_response};

void start(
    const Wire& wire, Shape shape, Api& api, const net::Request& request, const ReplyPtr& reply) {
  const chat::ModelInfo model = api.service().model();
  auto parsed = wire.parse(request.body, {.model = model, .options = api.options()});
  if (parsed && parsed->notes == kNothing) {
    return reply->send(net::json_response(200, loaded_answer(parsed->model, shape)));
  }
  if (parsed) return begin_generation(wire, api, request, reply, std::move(*parsed));
  api.metrics().refused(wire.endpoint, status_of(parsed.error()));
  reply->send(error_response(parsed.error()));
}

}  // namespace

void chat(Api& api, const net::Request& request, const ReplyPtr& reply) {
  start(kChat, Shape::kMessage, api, request, reply);
}

void generate(Api& api, const net::Request& request, const ReplyPtr& reply) {
  start(kGenerate, Shape::kResponse, api, request, reply);
}

}  // namespace tandem::protocol::ollama
