#include "net/reply.h"

#include <nlohmann/json.hpp>

namespace tandem::net {

Response json_response(int status, std::string body) {
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

const char* fault_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 404) return "not_found_error";
  if (status == 429) return "rate_limit_error";
  if (status >= 500) return "server_error";
  return "invalid_request_error";
}

Response fault(int status, const std::string& code, const std::string& message) {
  nlohmann::ordered_json error;
  error["message"] = message;
  error["type"] = fault_type(status);
  error["param"] = nullptr;
  error["code"] = code;
  // The type is for clients of the Anthropic wire.
  nlohmann::ordered_json body;
  body["type"] = "error";
  body["error"] = error;
  return json_response(status,
                       body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace tandem::net
