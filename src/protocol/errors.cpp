#include "protocol/errors.h"

namespace tandem::protocol {
namespace {

bool is_prompt(const Error& error) {
  return error.field == "messages" || error.field == "prompt" || error.field == "input" ||
         error.field.starts_with("input[");
}

const char* retry_after(const Error& error) {
  switch (error.code) {
    case ErrorCode::kBusy:
      return "1";
    case ErrorCode::kPeerLost:
      return "2";
    case ErrorCode::kUnavailable:
      return "5";
    default:
      return nullptr;
  }
}

}  // namespace

int status_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kUnsupported:
      return 400;
    case ErrorCode::kUnauthorized:
      return 401;
    case ErrorCode::kForbidden:
      return 403;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kConflict:
      return 409;
    case ErrorCode::kTooLarge:
      return is_prompt(error) ? 400 : 413;
    case ErrorCode::kBusy:
      return 429;
    case ErrorCode::kUnavailable:
    case ErrorCode::kPeerLost:
      return 503;
    case ErrorCode::kCancelled:
      return 499;
    case ErrorCode::kDeadline:
      return 504;
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
    case ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

std::string code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalid:
      return "invalid_value";
    case ErrorCode::kUnsupported:
      return "unsupported_value";
    case ErrorCode::kUnauthorized:
      return "invalid_api_key";
    case ErrorCode::kNotFound:
      if (error.field == "previous_response_id") return "previous_response_not_found";
      return error.field == "model" ? "model_not_found" : "not_found";
    case ErrorCode::kTooLarge:
      return is_prompt(error) ? "context_length_exceeded" : "too_large";
    case ErrorCode::kBusy:
      return "queue_full";
    case ErrorCode::kCancelled:
      return "request_cancelled";
    case ErrorCode::kDeadline:
      return "deadline_exceeded";
    case ErrorCode::kPeerLost:
      return "instance_lost";
    case ErrorCode::kInternal:
      return "internal_error";
    default:
      return name(error.code);
  }
}

Json error_body(const Error& error) {
  Json inner;
  inner["message"] = error.message;
  inner["type"] = net::fault_type(status_of(error));
  inner["param"] = error.field.empty() ? Json(nullptr) : Json(error.field);
  inner["code"] = code_of(error);
  return Json{{"error", std::move(inner)}};
}

std::optional<std::string> message_of(const net::Response& fault) {
  const Json body = Json::parse(fault.body, nullptr, false);
  const Json::json_pointer message("/error/message");
  if (!body.is_object() || !body.contains(message)) return std::nullopt;
  return body.at(message).get<std::string>();
}

net::Response error_response(const Error& error) {
  net::Response response = net::json_response(status_of(error), dump(error_body(error)));
  if (const char* wait = retry_after(error)) response.headers.push_back({"Retry-After", wait});
  return response;
}

}  // namespace tandem::protocol
