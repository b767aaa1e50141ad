// What a client of a parser has seen, with pieces joined. For tests.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "dialect/parser.h"

namespace tandem::dialect {

struct SeenCall {
  std::string id;
  std::string name;
  std::string arguments;
  bool complete = false;
  bool ended = false;

  bool operator==(const SeenCall&) const = default;
};

struct Joined {
  std::string text;
  std::string thinking;
  std::vector<SeenCall> calls;
  size_t misfits = 0;
  std::string order;  // t text, h thinking, c a call; neighbours once

  bool operator==(const Joined&) const = default;

  void add(const std::vector<Event>& events) {
    for (const Event& event : events) add(event);
  }

  void add(const Event& event) {
    TANDEM_CHECK(event.begin == position && event.end >= event.begin, "events do not tile");
    position = event.end;
    const bool is_open = !calls.empty() && !calls.back().ended;
    if (const auto* piece = std::get_if<Text>(&event.body)) {
      TANDEM_CHECK(!is_open && !piece->text.empty(), "text inside a call");
      const bool is_text = piece->channel == Channel::kText;
      (is_text ? text : thinking) += piece->text;
      mark(is_text ? 't' : 'h');
    } else if (const auto* started = std::get_if<CallStarted>(&event.body)) {
      TANDEM_CHECK(!is_open && started->call == calls.size(), "calls are not in order");
      TANDEM_CHECK(!started->name.empty(), "a call without a name");
      calls.push_back({.id = started->id, .name = started->name, .arguments = {}});
      order += 'c';
    } else if (const auto* part = std::get_if<CallArguments>(&event.body)) {
      TANDEM_CHECK(is_open && !part->json.empty(), "arguments outside a call");
      calls.back().arguments += part->json;
    } else if (const auto* over = std::get_if<CallEnded>(&event.body)) {
      TANDEM_CHECK(is_open, "a call ends twice");
      calls.back().complete = over->complete;
      calls.back().ended = true;
      TANDEM_CHECK(Json::parse(calls.back().arguments, nullptr, false).is_object(),
                   "arguments are no object: {}", calls.back().arguments);
    } else if (std::holds_alternative<Misfit>(event.body)) {
      ++misfits;
    }
  }

  void mark(char kind) {
    if (order.empty() || order.back() != kind) order += kind;
  }

  size_t position = 0;
};

inline std::shared_ptr<const Rules> rules_of(std::string_view dialect,
                                             Tools tools = {},
                                             bool thinks = true) {
  Rules rules;
  rules.dialect = find(dialect);
  TANDEM_CHECK(rules.dialect != nullptr, "no dialect {}", dialect);
  if (thinks) rules.thinking = ThinkingMarkers{.start = "<think>", .end = "</think>"};
  rules.tools = std::move(tools);
  return std::make_shared<const Rules>(std::move(rules));
}

inline Joined parse(const std::shared_ptr<const Rules>& rules,
                    std::string_view text,
                    Channel first = Channel::kText,
                    bool cut_off = false) {
  Parser parser(rules, first);
  Joined joined;
  joined.add(parser.feed(text));
  joined.add(parser.finish(cut_off));
  TANDEM_CHECK(joined.position <= text.size(), "events beyond the text");
  return joined;
}

/// In pieces of random lengths, of one byte at times.
inline Joined parse_cut(const std::shared_ptr<const Rules>& rules,
                        std::string_view text,
                        std::mt19937& random,
                        Channel first = Channel::kText,
                        bool cut_off = false) {
  Parser parser(rules, first);
  Joined joined;
  const size_t longest = 1 + random() % 24;
  while (!text.empty()) {
    const size_t size = std::min<size_t>(text.size(), 1 + random() % longest);
    joined.add(parser.feed(text.substr(0, size)));
    text.remove_prefix(size);
  }
  joined.add(parser.finish(cut_off));
  return joined;
}

}  // namespace tandem::dialect
