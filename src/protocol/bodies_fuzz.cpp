// Any body for each endpoint is parsed or refused, and what is refused makes a well formed answer.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "protocol/errors.h"
#include "protocol/openai/chat_request.h"
#include "protocol/openai/completion_request.h"

using namespace tandem;            // NOLINT: one file
using namespace tandem::protocol;  // NOLINT: one file

namespace {

void check(const Result<WireRequest>& wire) {
  if (wire) {
    TANDEM_CHECK(wire->request.choices >= 1, "no choice");
    return;
  }
  const net::Response response = error_response(wire.error());
  TANDEM_CHECK(response.status == 400 || response.status == 404, "status {}", response.status);
  TANDEM_CHECK(parse_json(response.body).has_value(), "the error is not JSON");
  TANDEM_CHECK(response.body.size() < 4096, "the error echoes {} bytes", response.body.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const chat::ModelInfo model{.id = "m", .max_context = 100, .vocab = 50, .created = 0};
  const Options options;
  check(openai::parse_chat(body, {.model = model, .options = options}));
  check(openai::parse_completion(body, {.model = model, .options = options}));
  return 0;
}
