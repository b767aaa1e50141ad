// Server-sent events: writing and reading.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/request.h"

namespace tandem::net {

struct SseEvent {
  std::string event;  // empty: "message"
  std::string data;
  std::string comment;  // a comment line comes as an event of its own, with nothing else

  bool operator==(const SseEvent&) const = default;
};

/// The headers of an event stream.
Headers sse_headers();

/// One event; data may have lines. The event's name must not.
std::string encode_sse(std::string_view data, std::string_view event = {});

/// A comment line, which clients skip.
std::string encode_sse_comment(std::string_view text);

/// Reads an event stream cut anywhere. Line ends may be LF, CRLF or CR. An event that no empty line
/// ends is never given. Not thread-safe.
class SseParser {
 public:
  /// The events that these bytes complete.
  std::vector<SseEvent> feed(std::string_view bytes);

 private:
  void line(std::string_view text, std::vector<SseEvent>& out);

  std::string pending_;  // a line without its end
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool started_ = false;
};

}  // namespace tandem::net
