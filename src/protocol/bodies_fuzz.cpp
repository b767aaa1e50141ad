// Any body for each endpoint is parsed or refused, and what is refused makes a well formed answer.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "protocol/anthropic/errors.h"
#include "protocol/anthropic/messages_request.h"
#include "protocol/errors.h"
#include "protocol/ollama/errors.h"
#include "protocol/ollama/request.h"
#include "protocol/openai/chat_request.h"
#include "protocol/openai/completion_request.h"
#include "protocol/openai/embeddings_request.h"
#include "protocol/openai/responses_request.h"

using namespace tandem;            // NOLINT: one file
using namespace tandem::protocol;  // NOLINT: one file

namespace {

void check_refusal(const net::Response& response) {
  TANDEM_CHECK(response.status == 400 || response.status == 404, "status {}", response.status);
  TANDEM_CHECK(parse_json(response.body).has_value(), "the error is not JSON");
  TANDEM_CHECK(response.body.size() < 4096, "the error echoes {} bytes", response.body.size());
}

void check(const Result<WireRequest>& wire, net::Response (*refuse)(const Error&)) {
  if (!wire) return check_refusal(refuse(wire.error()));
  TANDEM_CHECK(wire->request.choices >= 1, "no choice");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const chat::ModelInfo model{.id = "m", .max_context = 100, .vocab = 50, .created = 0};
  const Options options;
  const ParseContext context{.model = model, .options = options};
  check(openai::parse_chat(body, context), error_response);
  check(openai::parse_completion(body, context), error_response);
  check(openai::parse_responses(body, context), error_response);
  const auto embeddings = openai::parse_embeddings(body, context);
  if (!embeddings) check_refusal(error_response(embeddings.error()));
  TANDEM_CHECK(!embeddings || !embeddings->request.inputs.empty(), "no input");
  check(anthropic::parse_messages(body, context), anthropic::error_response);
  check(ollama::parse_chat(body, context), ollama::error_response);
  check(ollama::parse_generate(body, context), ollama::error_response);
  return 0;
}
