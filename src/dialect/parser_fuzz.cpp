// Any text in any dialect, cut anywhere, gives the same events, valid arguments, and loses no text.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dialect/parser.h"

namespace {

using namespace tandem::dialect;

void require(bool condition) {
  if (!condition) std::abort();
}

/// All events as one string, with pieces joined.
std::string record(const std::shared_ptr<const Rules>& rules, std::string_view text, size_t step) {
  Parser parser(rules, Channel::kText);
  std::string out;
  std::string arguments;
  char last = 0;
  size_t position = 0;
  const auto take = [&](const std::vector<Event>& events) {
    for (const Event& event : events) {
      require(event.begin == position && event.end >= position);
      position = event.end;
      const char kind = static_cast<char>('0' + event.body.index());
      if (const auto* piece = std::get_if<Text>(&event.body)) {
        const char channel = piece->channel == Channel::kText ? 't' : 'h';
        if (last != channel) out += channel;
        out += piece->text;
        last = channel;
      } else if (const auto* part = std::get_if<CallArguments>(&event.body)) {
        arguments += part->json;
      } else if (std::holds_alternative<CallEnded>(event.body)) {
        require(Json::parse(arguments, nullptr, false).is_object());
        out += std::exchange(arguments, {});
        last = kind;
      } else if (const auto* started = std::get_if<CallStarted>(&event.body)) {
        out += kind + started->name + "|" + started->id;
        last = kind;
      }
    }
  };
  for (size_t at = 0; at < text.size(); at += step) take(parser.feed(text.substr(at, step)));
  take(parser.finish());
  require(arguments.empty() && position <= text.size());
  return out;
}

const Tools& tools() {
  static const Tools kTools(Json::parse(
      R"([{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}, "b": {"type": "string"},
          "c": {"type": "array", "items": {"type": "number"}}, "d": {"type": "object"}}}}])"));
  return kTools;
}

}  // namespace

/// Input: a dialect, a step, then the answer.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string text;  // ASCII: other bytes would have to be whole characters
  for (size_t i = 2; i < size; ++i) text += static_cast<char>(data[i] & 0x7F);
  Rules rules;
  rules.dialect = &all()[data[0] % all().size()];
  rules.thinking = ThinkingMarkers{.start = "<think>", .end = "</think>"};
  rules.tools = tools();
  const auto shared = std::make_shared<const Rules>(std::move(rules));
  require(record(shared, text, 1 + data[1] % 7) == record(shared, text, text.size() + 1));
  return 0;
}
