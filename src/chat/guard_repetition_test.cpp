#include "chat/guard_repetition.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "chat/testdata/harness.h"

using namespace tandem;
using namespace tandem::chat;

namespace {

std::string times(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

/// The text in tokens of so many bytes; the bytes after which it was stuck, or nothing.
std::optional<size_t> stuck_after(const std::string& text, size_t token, bool is_in_call = false) {
  RepeatedSpan guard;
  for (size_t at = 0; at < text.size(); at += token) {
    guard.add(std::string_view(text).substr(at, token));
    if (guard.is_stuck(is_in_call)) return at + token;
  }
  return std::nullopt;
}

std::string numbered(const std::string& before, const std::string& behind, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += before + std::to_string(i) + behind;
  return out;
}

/// What repeats itself for a reason.
std::vector<std::string> sound_texts() {
  std::string base64;
  std::mt19937 random(3);
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int i = 0; i < 9000; ++i) base64 += kDigits[random() % 64];
  return {
      times("-", 9000),
      times("=-", 4000),
      times("─", 3000),
      times("| --- | --- | --- |\n", 300),
      times("0, ", 3000),
      "[" + times("[0, 0, 0, 0],\n ", 500) + "]",
      "[" + times("null, ", 300) + "null]",
      times("<td></td>", 200),
      times("    <li></li>\n", 100),
      times("| ok | ok | ok |\n", 100),
      times("\"\", ", 2000),
      times("AAAA", 3000),
      times("1.0\t2.0\t3.0\n", 500),
      times("✅ ", 2000),
      times("\n", 9000),
      times("  }\n", 900),
      base64,
      numbered("    case ", ": return true;\n", 400),
      numbered("{\"id\": ", ", \"name\": \"user\", \"tags\": [\"a\", \"b\"]},\n", 300),
      numbered("| row ", " | yes | yes | no |\n", 400),
      numbered("assert(f(", ") == expected);\n", 300),
      numbered("INSERT INTO t VALUES (", ", 'x', NULL);\n", 300),
      times("ha", 400),
      times("la la la, and again: ", 60),
  };
}

}  // namespace

TEST_CASE("repetition: a span that does not end is found soon, whatever its length") {
  std::mt19937 random(5);
  const std::string start = numbered("Line ", " of an answer that makes sense.\n", 40);
  for (const size_t span : {3, 4, 8, 9, 17, 120, 121, 400, 1000, 1200}) {
    std::string unit;
    while (unit.size() < span) unit += static_cast<char>('a' + random() % 26);
    const std::string text = start + times(unit, 12000 / span + 2);
    for (const size_t token : {1, 4, 7}) {
      CAPTURE(span);
      CAPTURE(token);
      const size_t copies = span <= 8 ? 16 : span <= 120 ? 10 : 5;
      const size_t least = start.size() + std::max(copies * span, RepeatedSpan::kLeastBytes);
      const auto after = stuck_after(text, token);
      REQUIRE(after);
      // The start may end with the span's first bytes by chance.
      CHECK(*after + span >= least);
      CHECK(*after <= least + token * RepeatedSpan::kEveryTokens + token);
      const auto in_call = stuck_after(text, token, true);
      REQUIRE(in_call);
      CHECK(*in_call + span >= start.size() + RepeatedSpan::kLeastCallBytes);
    }
  }
}

TEST_CASE("repetition: of any script") {
  for (const char* unit : {"Я думаю. ", "それは", "想一想。", "é, ", "ok ✅ "}) {
    CAPTURE(unit);
    CHECK(stuck_after(times(unit, 4000), 3));
  }
}

TEST_CASE("repetition: tables, lists, rulers, data and similar lines are none") {
  for (const std::string& text : sound_texts()) {
    CAPTURE(text.substr(0, 60));
    for (const size_t token : {1, 3, 8}) CHECK(!stuck_after(text, token));
    CHECK(!stuck_after(text, 3, true));
  }
}

TEST_CASE("repetition: the shortest span is the one found, as by comparing all") {
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t i = random() % 30; i > 0; --i) text += static_cast<char>('a' + random() % 2);
    std::string unit;
    for (size_t i = 1 + random() % 12; i > 0; --i) unit += static_cast<char>('a' + random() % 2);
    text += times(unit, random() % 40);
    size_t wanted = 0;
    for (size_t span = 3; span <= text.size() / 2 && wanted == 0; ++span) {
      size_t covered = span;
      while (covered < text.size() &&
             text[text.size() - 1 - covered] == text[text.size() - 1 - covered + span]) {
        ++covered;
      }
      const std::string end = text.substr(text.size() - span);
      const bool varies = end.find_first_not_of(end[0]) != std::string::npos;
      if (varies && covered >= std::max<size_t>(span * (span <= 8 ? 16 : 10), 60)) wanted = span;
    }
    CAPTURE(text);
    CHECK(repeated_span(text, 60) == wanted);
  }
}

TEST_CASE("repetition: an answer that is stuck ends, when that is asked for") {
  Harness harness;
  harness.answer("Well. " + times("I will try again. ", 200));
  Request asked = Harness::request();
  const size_t all = harness.run(asked).text.size();
  asked.guards.repeated_span = true;
  const Seen& seen = harness.run(asked);
  REQUIRE(seen.ends.size() == 1);
  CHECK(seen.text.size() < RepeatedSpan::kLeastBytes + 200);
  CHECK(all > 3000);
  CHECK(seen.text.size() >= RepeatedSpan::kLeastBytes);
  CHECK(seen.ends[0].reason == FinishReason::kStop);
  CHECK(seen.ends[0].guards == std::vector{Guard::kRepeatedSpan});
  CHECK(harness.fake.cancelled().size() == 1);
  asked.ignore_eos = true;
  CHECK(harness.run(asked).text.size() == all);
  asked.ignore_eos = false;
  asked.input = RawPrompt{.prompt = "x"};
  CHECK(harness.run(asked).text.size() == all);
}

TEST_CASE("repetition: a call that it cuts off is closed, and counts as cut off") {
  Harness harness;
  harness.answer("<tool_call>{\"name\": \"put\", \"arguments\": {\"text\": \"" +
                 times("the same again and ", 900) + "\"}}</tool_call>");
  Request asked = Harness::request();
  std::get<Conversation>(asked.input).tools = Json::parse(R"([{"function": {"name": "put"}}])");
  asked.guards.repeated_span = true;
  const Seen& seen = harness.run(asked);
  REQUIRE(seen.ends.size() == 1);
  CHECK(seen.ends[0].reason == FinishReason::kLength);
  std::string arguments;
  for (const Event& event : seen.events) {
    if (const auto* part = std::get_if<CallArguments>(&event.body)) arguments += part->json;
  }
  CHECK(Json::accept(arguments));
  CHECK(arguments.size() >= RepeatedSpan::kLeastCallBytes);
  CHECK(arguments.size() < 12000);
}

TEST_CASE("repetition: of a strict call that it cuts off both are told, the guard and the cut") {
  Harness harness;
  harness.answer("<tool_call>{\"name\": \"put\", \"arguments\": {\"text\": \"" +
                     times("the same again and ", 900),
                 false);
  Request asked = Harness::request();
  std::get<Conversation>(asked.input).tools = Json::parse(
      R"([{"type": "function", "function": {"name": "put", "strict": true, "parameters": {
      "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
      "additionalProperties": false}}}])");
  asked.guards.repeated_span = true;
  const Seen& seen = harness.run(asked);
  REQUIRE(seen.ends.size() == 1);
  CHECK(harness.fake.submitted().at(0).grammar);
  CHECK(seen.ends[0].reason == FinishReason::kLength);
  CHECK(seen.ends[0].guards == std::vector{Guard::kRepeatedSpan});
  CHECK(seen.ends[0].cut_in_call);
}
