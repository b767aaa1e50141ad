// POST /v1/responses.
#include "protocol/errors.h"
#include "protocol/generation.h"
#include "protocol/openai/responses_encoder.h"
#include "protocol/openai/responses_request.h"

namespace tandem::protocol::openai {

void responses(Api& api, const net::Request& request, const ReplyPtr& reply) {
  static constexpr Wire kWire{.endpoint = "responses",
                              .id_prefix = "resp_",
                              .parse = parse_responses,
                              .make_encoder =
                                  [](AnswerHead head, const WireRequest& parsed, const Options&) {
                                    return make_responses_encoder(std::move(head), parsed.notes);
                                  },
                              .refuse = error_response};
  start_generation(kWire, api, request, reply);
}

}  // namespace tandem::protocol::openai
