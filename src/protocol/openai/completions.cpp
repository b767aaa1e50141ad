// POST /v1/completions.
#include "protocol/errors.h"
#include "protocol/generation.h"
#include "protocol/openai/completion_encoder.h"
#include "protocol/openai/completion_request.h"

namespace tandem::protocol::openai {

void completions(Api& api, const net::Request& request, const ReplyPtr& reply) {
  static constexpr Wire kWire{.endpoint = "completions",
                              .id_prefix = "cmpl-",
                              .parse = parse_completion,
                              .make_encoder =
                                  [](AnswerHead head, const WireRequest& parsed, const Options&) {
                                    return make_completion_encoder(std::move(head), parsed.echo);
                                  },
                              .refuse = error_response};
  start_generation(kWire, api, request, reply);
}

}  // namespace tandem::protocol::openai
