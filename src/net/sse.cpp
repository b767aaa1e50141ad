#include "net/sse.h"

namespace tandem::net {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Adds `text` as lines that each start with `prefix`. CR and CRLF end a line as LF does.
void append_lines(std::string& out, std::string_view prefix, std::string_view text) {
  while (true) {
    const size_t end = text.find_first_of("\r\n");
    out.append(prefix).append(text.substr(0, end)).push_back('\n');
    if (end == std::string_view::npos) return;
    const bool two = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
    text.remove_prefix(end + (two ? 2 : 1));
  }
}

}  // namespace

Headers sse_headers() {
  return {{"Content-Type", "text/event-stream; charset=utf-8"},
          {"Cache-Control", "no-cache, no-transform"},
          {"X-Accel-Buffering", "no"}};
}

std::string encode_sse(std::string_view data, std::string_view event) {
  std::string out;
  out.reserve(data.size() + event.size() + 16);
  if (!event.empty()) out.append("event: ").append(event).push_back('\n');
  append_lines(out, "data: ", data);
  out.push_back('\n');
  return out;
}

std::string encode_sse_comment(std::string_view text) {
  std::string out;
  append_lines(out, ": ", text);
  out.push_back('\n');
  return out;
}

std::vector<SseEvent> SseParser::feed(std::string_view bytes) {
  std::vector<SseEvent> out;
  for (const char c : bytes) {
    const bool joined = c == '\n' && after_cr_;
    after_cr_ = c == '\r';
    if (joined) continue;
    if (c != '\n' && c != '\r') {
      pending_.push_back(c);
      continue;
    }
    line(pending_, out);
    pending_.clear();
  }
  return out;
}

void SseParser::line(std::string_view text, std::vector<SseEvent>& out) {
  if (!started_ && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  started_ = true;
  if (text.empty()) {
    if (has_data_) out.push_back(std::move(event_));
    event_ = {};
    has_data_ = false;
    return;
  }
  const size_t colon = text.find(':');
  const std::string_view field = text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (colon == 0) out.push_back({.event = {}, .data = {}, .comment = std::string(value)});
  if (field == "event") event_.event = value;
  if (field != "data") return;
  if (has_data_) event_.data.push_back('\n');
  event_.data.append(value);
  has_data_ = true;
}

}  // namespace tandem::net
