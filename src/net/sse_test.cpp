#include "net/sse.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace tandem::net {
namespace {

std::vector<SseEvent> parse(std::string_view a, std::string_view b = {}) {
  SseParser parser;
  std::vector<SseEvent> events = parser.feed(a);
  for (SseEvent& event : parser.feed(b)) events.push_back(std::move(event));
  return events;
}

SseEvent message(std::string data) { return {.event = {}, .data = std::move(data), .comment = {}}; }
SseEvent comment(std::string text) { return {.event = {}, .data = {}, .comment = std::move(text)}; }

const std::vector<std::string> kStreams = {
    "data: a\n\n",
    "data: a\r\n\r\ndata: b\r\n\r\n",
    "data:a\rdata: b\r\r",
    ": keepalive 1/2\n\nevent: error\ndata: {}\n\n",
    "\xEF\xBB\xBF"
    "data: caf\xC3\xA9\n\n",
    "data\n\ndata:\ndata:\n\n",
    "id: 1\nretry: 5\nunknown: x\ndata: y\n\n: end\n",
    "data: never ended\n",
};

TEST_CASE("sse: events do not depend on where the stream is cut") {
  for (const std::string& stream : kStreams) {
    const auto whole = parse(stream);
    for (size_t cut = 0; cut <= stream.size(); ++cut) {
      CAPTURE(stream);
      CAPTURE(cut);
      CHECK(parse(std::string_view(stream).substr(0, cut), std::string_view(stream).substr(cut)) ==
            whole);
    }
  }
}

TEST_CASE("sse: any line end ends a line, and lines of data are joined") {
  CHECK(parse(kStreams[1]) == std::vector{message("a"), message("b")});
  CHECK(parse(kStreams[2]) == std::vector{message("a\nb")});
  CHECK(parse(kStreams[4]) == std::vector{message("caf\xC3\xA9")});
  CHECK(parse(kStreams[5]) == std::vector{message(""), message("\n")});
}

TEST_CASE("sse: comments are given apart, unknown fields and unended events are not") {
  CHECK(parse(kStreams[3]) == std::vector{comment("keepalive 1/2"),
                                          SseEvent{.event = "error", .data = "{}", .comment = {}}});
  CHECK(parse(kStreams[6]) == std::vector{message("y"), comment("end")});
  CHECK(parse(kStreams[7]).empty());
}

TEST_CASE("sse: what was encoded is read back, and cannot break out of its event") {
  for (const std::string data :
       {"", "x", "two\nlines", "\n", "a\r\nb", "data: x", "event: y\n\nz"}) {
    CAPTURE(data);
    const auto events = parse(encode_sse(data, "name"));
    REQUIRE(events.size() == 1);
    std::string expected = data;
    if (const size_t at = expected.find("\r\n"); at != std::string::npos) expected.erase(at, 1);
    CHECK(events[0] == SseEvent{.event = "name", .data = expected, .comment = {}});
  }
  CHECK(parse(encode_sse_comment("a\n\ndata: x")).size() == 3);
}

}  // namespace
}  // namespace tandem::net
