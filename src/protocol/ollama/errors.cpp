#include "protocol/ollama/errors.h"

#include "protocol/errors.h"

namespace tandem::protocol::ollama {

Json error_body(const Error& error) { return Json{{"error", error.message}}; }

void restate_fault(net::Response& fault) {
  if (const auto message = message_of(fault)) fault.body = dump(Json{{"error", *message}});
}

net::Response error_response(const Error& error) {
  net::Response response = protocol::error_response(error);
  response.body = dump(error_body(error));
  return response;
}

}  // namespace tandem::protocol::ollama
