// What holds for every dialect, whatever a model writes and however it is cut.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "dialect/joined_test.h"
#include "dialect/random_call_test.h"

using namespace tandem::dialect;

namespace {

constexpr int kCuts = 1000;

/// A dialect whose whole answer is one call does not take text around it.
bool takes_text(const Dialect& dialect) {
  return dialect.name != "llama3" && !dialect.syntax->owns_answer();
}

struct Answer {
  std::string text;
  std::string expected_text;
  std::string expected_thinking;
  std::vector<Call> calls;
};

Answer random_answer(const Dialect& dialect, std::mt19937& random) {
  Answer answer;
  const bool thinks = takes_text(dialect) && random() % 3 == 0;
  if (thinks) {
    answer.text = "<think>hm, 1 < 2\n</think>";
    answer.expected_thinking = "hm, 1 < 2\n";
  }
  if (takes_text(dialect) && random() % 2 == 0) {
    answer.text += "\n\nLet me see `<x>`:\n";
    answer.expected_text = "\n\nLet me see `<x>`:\n";
  }
  const size_t calls = random() % 4;
  for (size_t i = 0; i < calls; ++i) answer.calls.push_back(random_call(random));
  if (calls > 0) answer.text += render(dialect.layout, answer.calls);
  if (takes_text(dialect) && calls > 0 && random() % 3 == 0) {
    answer.text += "\nDone, or not?";
    answer.expected_text += "\nDone, or not?";
  }
  return answer;
}

void check_calls(const Joined& seen, const Answer& answer) {
  REQUIRE(seen.calls.size() == answer.calls.size());
  for (size_t i = 0; i < seen.calls.size(); ++i) {
    CHECK(seen.calls[i].name == answer.calls[i].name);
    CHECK(seen.calls[i].complete);
    const Json arguments = Json::parse(seen.calls[i].arguments);
    for (const auto& [key, value] : answer.calls[i].arguments.items()) {
      CAPTURE(key);
      CHECK(arguments.value(key, Json("missing")) == value);
    }
    CHECK(arguments.size() == answer.calls[i].arguments.size());
  }
}

/// In random pieces, as long as the answer is not over.
Joined parse_ending(const std::shared_ptr<const Rules>& rules,
                    std::string_view text,
                    std::mt19937& random,
                    bool& is_over) {
  Parser parser(rules, Channel::kText);
  Joined joined;
  while (!text.empty() && !parser.is_over()) {
    const size_t size = std::min<size_t>(text.size(), 1 + random() % 24);
    joined.add(parser.feed(text.substr(0, size)));
    text.remove_prefix(size);
  }
  is_over = parser.is_over();
  joined.add(parser.finish());
  return joined;
}

/// Whether values of an answer that was cut off are beginnings of what they were to become. What
/// is no string may be cut in its spelling, and is then text.
bool begins(const Json& part, const Json& whole) {
  if (part.is_string() && whole.is_string()) {
    return whole.get<std::string>().starts_with(part.get<std::string>());
  }
  if (part.is_array() && whole.is_array()) {
    for (size_t i = 0; i < part.size(); ++i) {
      if (i >= whole.size() || !begins(part[i], whole[i])) return false;
    }
  }
  if (part.is_object() && whole.is_object()) {
    for (const auto& [key, value] : part.items()) {
      if (!whole.contains(key) || !begins(value, whole[key])) return false;
    }
  }
  return true;
}

bool same_events(const Joined& a, const Joined& b) {
  return a.text == b.text && a.thinking == b.thinking && a.calls == b.calls &&
         a.misfits == b.misfits && a.order == b.order;
}

}  // namespace

TEST_CASE("dialects: a rendered call is read back, and cuts change nothing") {
  for (const Dialect& dialect : all()) {
    std::mt19937 random(7);
    const auto rules = rules_of(dialect.name, Tools(sample_tools()));
    for (int round = 0; round < kCuts; ++round) {
      const Answer answer = random_answer(dialect, random);
      CAPTURE(dialect.name);
      CAPTURE(answer.text);
      const Joined whole = parse(rules, answer.text);
      check_calls(whole, answer);
      CHECK(whole.text == answer.expected_text);
      CHECK(whole.thinking == answer.expected_thinking);
      CHECK(whole.misfits == 0);
      const Joined cut = parse_cut(rules, answer.text, random);
      CHECK(cut == whole);
      if (!(cut == whole) || whole.calls.size() != answer.calls.size()) return;
    }
  }
}

TEST_CASE("dialects: an answer that ends anywhere leaves valid calls, and no text is lost") {
  for (const Dialect& dialect : all()) {
    std::mt19937 random(11);
    const auto rules = rules_of(dialect.name, Tools(sample_tools()));
    for (int round = 0; round < 200; ++round) {
      const Answer answer = random_answer(dialect, random);
      std::string part = answer.text.substr(0, random() % (answer.text.size() + 1));
      while (!part.empty() && (part.back() & 0xC0) == 0x80) part.pop_back();
      if (!part.empty() && (part.back() & 0x80) != 0) part.pop_back();
      CAPTURE(dialect.name);
      CAPTURE(part);
      const Joined seen = parse(rules, part);
      CHECK(parse_cut(rules, part, random) == seen);
      // Cut off there, no more is put out than where it ends by itself.
      const Joined cut_off = parse(rules, part, Channel::kText, true);
      CHECK(parse_cut(rules, part, random, Channel::kText, true) == cut_off);
      CHECK(cut_off.calls.size() == seen.calls.size());
      CHECK(seen.text.starts_with(cut_off.text));
      CHECK(seen.calls.size() <= answer.calls.size());
      for (size_t i = 0; i < seen.calls.size(); ++i) {
        CHECK(seen.calls[i].ended);
        if (i + 1 < seen.calls.size()) CHECK(seen.calls[i].complete);
      }
      for (const std::string& marker : dialect.syntax->starts()) {
        CHECK(seen.text.find(marker) == std::string::npos);
      }
    }
  }
}

TEST_CASE("dialects: no piece of a tag is left in a value where the answer is cut off") {
  for (const Dialect& dialect : all()) {
    std::mt19937 random(12);
    const auto rules = rules_of(dialect.name, Tools(sample_tools()));
    for (int round = 0; round < 30; ++round) {
      const Call call = random_call(random);
      const std::string whole = render(dialect.layout, {&call, 1});
      for (size_t size = 0; size < whole.size(); ++size) {
        if ((static_cast<unsigned char>(whole[size]) & 0xC0) == 0x80) continue;
        const std::string part = whole.substr(0, size);
        const Joined seen = parse(rules, part, Channel::kText, true);
        if (seen.calls.empty()) continue;
        CAPTURE(dialect.name);
        CAPTURE(part);
        CAPTURE(seen.calls[0].arguments);
        const bool is_beginning = begins(Json::parse(seen.calls[0].arguments), call.arguments);
        CHECK(is_beginning);
        CHECK(parse_cut(rules, part, random, Channel::kText, true) == seen);
        if (!is_beginning) return;
      }
    }
  }
}

TEST_CASE("dialects: any mixture of their words gives the same however it is cut") {
  for (const Dialect& dialect : all()) {
    std::mt19937 random(13);
    const auto rules = rules_of(dialect.name, Tools(sample_tools()));
    std::vector<std::string> words = dialect.syntax->literals();
    for (const char* word :
         {"<think>",  "</think>", "{",          "}",    "\"name\": ", "\"put\"", "\"arguments\": ",
          ", ",       " ",        "\n",         "put",  "text",       "```\n",   "`",
          "=",        ">",        "[",          "]",    "(",          "call:",   ":",
          "\"path\"", "1",        "functions.", " to=", "é"}) {
      words.emplace_back(word);
    }
    for (int round = 0; round < kCuts; ++round) {
      std::string text;
      for (size_t i = random() % 14; i > 0; --i) text += words[random() % words.size()];
      CAPTURE(dialect.name);
      CAPTURE(text);
      const Joined whole = parse(rules, text);
      const Joined cut = parse_cut(rules, text, random);
      CHECK(cut == whole);
      CHECK(parse_cut(rules, text, random, Channel::kText, true) ==
            parse(rules, text, Channel::kText, true));
      if (!(cut == whole)) return;
    }
  }
}

TEST_CASE("dialects: what no call is in is text to the last byte") {
  const std::string text =
      "# Tags\n\nUse <b>x</b>, a < b, [1] and {\"a\": 1}; functions.f(x=1), call:me.\n\n"
      "```xml\n<root/>\n```\n</p> end\n";
  for (const Dialect& dialect : all()) {
    CAPTURE(dialect.name);
    const Joined seen = parse(rules_of(dialect.name, Tools(sample_tools())), text);
    CHECK(seen.text == text);
    CHECK(seen.calls.empty());
    CHECK(seen.misfits == 0);
  }
}

TEST_CASE("dialects: an answer that ends behind its calls is the answer cut there") {
  for (const Dialect& dialect : all()) {
    std::mt19937 random(17);
    const auto all_of_it = rules_of(dialect.name, Tools(sample_tools()));
    auto ending = std::make_shared<Rules>(*all_of_it);
    ending->ends_after_calls = true;
    for (int round = 0; round < kCuts; ++round) {
      Answer answer = random_answer(dialect, random);
      if (answer.calls.empty()) continue;
      const std::string calls = render(dialect.layout, answer.calls);
      const size_t end = answer.text.find(calls) + calls.size();
      const std::string kept = answer.text.substr(0, end);
      // White space, thinking, text: no further call.
      answer.text = kept + "\n" + (random() % 2 == 0 ? "<think>more" : "And more.");
      CAPTURE(dialect.name);
      CAPTURE(answer.text);
      const Joined wanted = parse(all_of_it, kept);
      CHECK(wanted.calls.size() == answer.calls.size());
      bool is_over = false;
      const Joined seen = parse_ending(ending, answer.text, random, is_over);
      CHECK(is_over);
      CHECK(same_events(seen, wanted));
      if (!same_events(seen, wanted) || !is_over) return;
    }
  }
}

TEST_CASE("dialects: an answer goes on while its calls may go on") {
  for (const Dialect& dialect : all()) {
    std::mt19937 random(19);
    auto ending = std::make_shared<Rules>(*rules_of(dialect.name, Tools(sample_tools())));
    ending->ends_after_calls = true;
    for (int round = 0; round < 200; ++round) {
      const Answer answer = random_answer(dialect, random);
      const std::string calls = answer.calls.empty() ? "" : render(dialect.layout, answer.calls);
      const size_t last =
          calls.empty() ? answer.text.size() : answer.text.find(calls) + calls.size();
      // Everything but the last byte of the calls.
      const std::string part = answer.text.substr(0, last - (calls.empty() ? 0 : 1));
      CAPTURE(dialect.name);
      CAPTURE(part);
      Parser parser(ending, Channel::kText);
      parser.feed(part);
      CHECK(!parser.is_over());
    }
  }
}

TEST_CASE("dialects: with one call wanted, the answer is cut behind the first complete one") {
  for (const Dialect& dialect : all()) {
    std::mt19937 random(23);
    auto one = std::make_shared<Rules>(*rules_of(dialect.name, Tools(sample_tools())));
    one->ends_after_calls = one->only_first_call = true;
    for (int round = 0; round < 300; ++round) {
      const Answer answer = random_answer(dialect, random);
      if (answer.calls.empty()) continue;
      CAPTURE(dialect.name);
      CAPTURE(answer.text);
      bool is_over = false;
      const Joined seen = parse_ending(one, answer.text, random, is_over);
      CHECK(is_over);
      REQUIRE(seen.calls.size() == 1);
      CHECK(seen.calls[0].complete);
      CHECK(seen.calls[0].name == answer.calls[0].name);
      CHECK(Json::parse(seen.calls[0].arguments).size() == answer.calls[0].arguments.size());
      CHECK(seen.misfits == 0);
    }
  }
}

TEST_CASE("dialects: a call inside thinking, or one that failed, ends no answer") {
  auto ending = std::make_shared<Rules>(*rules_of("json_tools", Tools(sample_tools())));
  ending->ends_after_calls = true;
  const std::string call = R"(<tool_call>{"name": "ls", "arguments": {}}</tool_call>)";
  Joined seen = parse(ending, "<think>a" + call + "b</think>c");
  CHECK(seen.thinking == "ab");
  CHECK(seen.text == "c");
  CHECK(seen.calls.size() == 1);
  seen = parse(ending, call + R"(<tool_call>{"name": 7}</tool_call> rest)");
  CHECK(seen.text == R"(<tool_call>{"name": 7}</tool_call> rest)");
  CHECK(seen.misfits == 1);
  seen = parse(ending, call + "\n<tool_call> is the tag");
  CHECK(seen.text == "");
  CHECK(seen.misfits == 0);
}
