#include "app/checks/target.h"

#include <fmt/format.h>

#include "app/server_json.h"

namespace tandem::app::checks {
namespace {

constexpr size_t kLongestDetail = 300;

Answer answer_of(const net::Response& response) {
  return {
      .status = response.status, .body = parse_server_json(response.body), .text = response.body};
}

}  // namespace

Verdict ok(std::string detail) { return {Verdict::State::kOk, std::move(detail)}; }
Verdict failed(std::string detail) { return {Verdict::State::kFailed, std::move(detail)}; }
Verdict skipped(std::string detail) { return {Verdict::State::kSkipped, std::move(detail)}; }

const char* name(Verdict::State state) {
  if (state == Verdict::State::kOk) return "ok";
  return state == Verdict::State::kFailed ? "failed" : "skipped";
}

std::string Answer::told() const {
  std::string message = text_of(member_of(body, "error"), "message");
  if (message.empty()) message = text;
  if (message.size() > kLongestDetail) message = message.substr(0, kLongestDetail) + "…";
  return fmt::format("status {}: {}", status, message);
}

bool Stream::is_done() const { return !events.empty() && events.back().data == "[DONE]"; }

Result<Answer> Target::get(const std::string& path) const {
  const auto response = client.get(path);
  if (!response) return response.error();
  return answer_of(*response);
}

Result<Answer> Target::post(const std::string& path, const Json& body) const {
  const auto response = client.post(path, body.dump());
  if (!response) return response.error();
  return answer_of(*response);
}

Result<Stream> Target::stream(const std::string& path,
                              const Json& body,
                              std::optional<size_t> stop_after) const {
  Stream stream;
  const auto response = client.stream(path, body.dump(), [&](const net::SseEvent& event) {
    if (event.data.empty()) return true;  // a comment
    stream.events.push_back(event);
    if (event.data != "[DONE]") stream.data.push_back(parse_server_json(event.data));
    return !stop_after || stream.events.size() < *stop_after;
  });
  if (!response) return response.error();
  stream.head = answer_of(*response);
  return stream;
}

Json body_of(const Target& target, const char* question, uint32_t max_tokens) {
  return {{"model", target.model},
          {"messages", Json::array({{{"role", "user"}, {"content", question}}})},
          {"max_tokens", max_tokens},
          {"temperature", 0}};
}

}  // namespace tandem::app::checks
