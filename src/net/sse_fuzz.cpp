// Any bytes as a stream parse the same however they are cut, and any data survives a round trip.
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "net/sse.h"

using tandem::net::encode_sse;
using tandem::net::SseEvent;
using tandem::net::SseParser;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  SseParser whole_parser;
  const std::vector<SseEvent> whole = whole_parser.feed(text);
  SseParser cut_parser;
  std::vector<SseEvent> cut;
  for (size_t at = 0; at < size; at += 3) {
    for (SseEvent& event : cut_parser.feed(text.substr(at, 3))) cut.push_back(std::move(event));
  }
  TANDEM_CHECK(whole == cut, "a cut changed the events");

  SseParser parser;
  const std::vector<SseEvent> back = parser.feed(encode_sse(text));
  TANDEM_CHECK(back.size() == 1, "one event became {}", back.size());
  const bool plain = text.find('\r') == std::string_view::npos;
  TANDEM_CHECK(!plain || back[0].data == text, "data changed");
  return 0;
}
