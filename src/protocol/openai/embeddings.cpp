// POST /v1/embeddings.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "protocol/call.h"
#include "protocol/errors.h"
#include "protocol/openai/embeddings_encoder.h"
#include "protocol/openai/embeddings_request.h"

namespace tandem::protocol::openai {
namespace {

constexpr const char* kEndpoint = "embeddings";

RequestRecord record_of(const std::string& id,
                        const EmbeddingsRequest& wire,
                        const net::Request& request) {
  RequestRecord record;
  record.id = id;
  record.endpoint = kEndpoint;
  record.model = wire.model;
  record.client = client_of(request);
  record.peer = request.peer;
  record.created = unix_seconds();
  return record;
}

/// Kept alive by the service's sink until the last event.
class EmbeddingCall {
 public:
  EmbeddingCall(Api& api, std::string id, std::string model, bool is_base64, ReplyPtr reply)
      : api_(api),
        id_(std::move(id)),
        model_(std::move(model)),
        is_base64_(is_base64),
        reply_(std::move(reply)) {}

  void receive(const chat::EmbeddingEvent& event) {
    if (const auto* progress = std::get_if<chat::EmbeddingProgress>(&event)) {
      note(chat::Progress{.done = clipped(progress->done), .total = clipped(progress->total)});
    } else if (const auto* error = std::get_if<Error>(&event)) {
      note(chat::Failed{.error = *error, .usage = {}});
      send(error_response(*error));
    } else {
      finish(std::get<chat::Vectors>(event));
    }
  }

  /// Of all inputs; before any event that ends the request can be sent.
  void set_tokens(uint64_t tokens) {
    const std::lock_guard lock(mutex_);
    tokens_ = tokens;
    if (auto early = std::exchange(early_, std::nullopt)) answer(*early);
  }

 private:
  /// Tables count in 32 bits, which no context of a single input exceeds.
  static uint32_t clipped(uint64_t tokens) {
    return static_cast<uint32_t>(std::min<uint64_t>(tokens, UINT32_MAX));
  }

  void note(decltype(chat::Event::body) body) {
    api_.table().note(id_, {.choice = 0, .body = std::move(body)});
  }

  void finish(chat::Vectors vectors) {
    const std::lock_guard lock(mutex_);
    if (tokens_) return answer(vectors);
    early_ = std::move(vectors);
  }

  void answer(const chat::Vectors& vectors) {
    note(chat::End{.stop_text = {}, .usage = {.prompt_tokens = clipped(*tokens_)}});
    send(net::json_response(200, encode_embeddings(vectors, is_base64_, model_, *tokens_)));
  }

  void send(net::Response response) const {
    response.headers.push_back({"X-Request-Id", id_});
    reply_->send(std::move(response));
  }

  Api& api_;
  const std::string id_;
  const std::string model_;
  const bool is_base64_;
  const ReplyPtr reply_;
  std::mutex mutex_;
  std::optional<uint64_t> tokens_;
  std::optional<chat::Vectors> early_;  // that came before the number of tokens was known
};

}  // namespace

void embeddings(Api& api, const net::Request& request, const ReplyPtr& reply) {
  const auto refuse = [&](const Error& error) {
    api.metrics().refused(kEndpoint, status_of(error));
    reply->send(error_response(error));
  };
  const chat::ModelInfo model = api.service().model();
  auto wire = parse_embeddings(request.body, {.model = model, .options = api.options()});
  if (!wire) return refuse(wire.error());
  api.metrics().ignored(wire->ignored);
  const std::string id = new_request_id("embd-");
  wire->request.id = id;
  wire->request.client = client_of(request);
  if (!api.table().open(record_of(id, *wire, request)))
    return refuse({ErrorCode::kConflict, "the request's id is in use"});
  const auto call = std::make_shared<EmbeddingCall>(api, id, wire->model, wire->is_base64, reply);
  const auto tokens =
      api.service().embed(std::move(wire->request),
                          [call](const chat::EmbeddingEvent& event) { call->receive(event); });
  if (!tokens) {
    api.table().forget(id);
    return refuse(tokens.error());
  }
  const auto shown = static_cast<uint32_t>(std::min<uint64_t>(*tokens, UINT32_MAX));
  api.table().accept(id, {.prompt_tokens = shown});
  call->set_tokens(*tokens);
  reply->on_closed([&service = api.service(), id] { service.cancel(id); });
}

}  // namespace tandem::protocol::openai
