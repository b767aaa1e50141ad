#include "protocol/anthropic/errors.h"

#include "protocol/errors.h"

namespace tandem::protocol::anthropic {
namespace {

constexpr int kOverloaded = 529;

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 504:
      return "timeout_error";
    case kOverloaded:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

int own_status(int status) { return status == 503 ? kOverloaded : status; }

Json make_body(int status, const std::string& message) {
  Json out;
  out["type"] = "error";
  out["error"]["type"] = type_of(status);
  out["error"]["message"] = message;
  return out;
}

}  // namespace

int status_of(const Error& error) { return own_status(protocol::status_of(error)); }

Json error_body(const Error& error) {
  Json out = make_body(status_of(error), error.message);
  if (error.code == ErrorCode::kNotFound && error.field == "thread")
    out["error"]["details"]["error_code"] = "thread_not_found";
  return out;
}

void restate_fault(net::Response& fault) {
  const auto message = message_of(fault);
  if (!message) return;
  fault.status = own_status(fault.status);
  fault.body = dump(make_body(fault.status, *message));
}

net::Response error_response(const Error& error) {
  net::Response response = protocol::error_response(error);
  response.status = status_of(error);
  response.body = dump(error_body(error));
  return response;
}

}  // namespace tandem::protocol::anthropic
