#include "protocol/openai/responses_events.h"

#include <algorithm>

#include "net/sse.h"

namespace tandem::protocol::openai {

std::vector<std::string_view> events_in(std::string_view piece) {
  std::vector<std::string_view> events;
  while (!piece.empty()) {
    const size_t end = std::min(piece.find("\n\n"), piece.size() - 1);
    const std::string_view event = piece.substr(0, end + 2);
    if (!event.starts_with(':')) events.push_back(event);
    piece.remove_prefix(event.size());
  }
  return events;
}

std::string_view event_name(std::string_view event) {
  constexpr std::string_view kField = "event: ";
  if (!event.starts_with(kField)) return {};
  return event.substr(kField.size(), event.find('\n') - kField.size());
}

Json event_data(std::string_view event) {
  net::SseParser parser;
  const auto parsed = parser.feed(event);
  if (parsed.empty()) return Json::object();
  Json data = Json::parse(parsed.front().data, nullptr, false);
  return data.is_object() ? data : Json::object();
}

bool is_end(std::string_view name) {
  return name == "response.completed" || name == "response.incomplete" || name == "response.failed";
}

}  // namespace tandem::protocol::openai
