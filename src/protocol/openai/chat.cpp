// POST /v1/chat/completions.
#include "protocol/errors.h"
#include "protocol/generation.h"
#include "protocol/openai/chat_encoder.h"
#include "protocol/openai/chat_request.h"

namespace tandem::protocol::openai {

void chat_completions(Api& api, const net::Request& request, const ReplyPtr& reply) {
  static constexpr Wire kWire{.endpoint = "chat",
                              .id_prefix = "chatcmpl-",
                              .parse = parse_chat,
                              .make_encoder =
                                  [](AnswerHead head, const WireRequest& wire, const Options&) {
                                    return make_chat_encoder(
                                        std::move(head), wire.notes.get<std::set<std::string>>());
                                  },
                              .refuse = error_response};
  start_generation(kWire, api, request, reply);
}

}  // namespace tandem::protocol::openai
