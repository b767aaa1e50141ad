#include "protocol/ollama/errors.h"

#include "protocol/errors.h"

namespace tandem::protocol::ollama {

Json error_body(const Error& error) { return Json{{"error", error.message}}; }

void restate_fault(net::Response& fault) {
  const Json body = Json::parse(fault.body, nullptr, false);
  const Json::json_pointer message("/error/message");
  if (body.is_object() && body.contains(message)) {
    fault.body = dump(Json{{"error", body.at(message)}});
  }
}

net::Response error_response(const Error& error) {
  net::Response response = protocol::error_response(error);
  response.body = dump(error_body(error));
  return response;
}

}  // namespace tandem::protocol::ollama
