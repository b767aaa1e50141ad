// What is written as an answer is read back as the same parts, in every dialect.
#include "dialect/written_answer.h"

#include <doctest/doctest.h>

#include <random>

#include "dialect/joined_test.h"
#include "dialect/random_call_test.h"

using namespace tandem::dialect;

namespace {

const ThinkingMarkers kThink{.start = "<think>", .end = "</think>"};

AnswerPart thinking(std::string text) {
  return {.channel = Channel::kThinking, .text = std::move(text)};
}
AnswerPart prose(std::string text) { return {.channel = Channel::kText, .text = std::move(text)}; }

void check(const Dialect& dialect, bool in_thinking, const std::vector<AnswerPart>& parts) {
  const std::string text =
      write_answer(dialect, {.thinking = kThink, .in_thinking = in_thinking}, parts);
  CAPTURE(dialect.name);
  CAPTURE(text);
  const Joined seen = parse(rules_of(dialect.name, Tools(sample_tools())), text,
                            in_thinking ? Channel::kThinking : Channel::kText);
  std::string said;
  std::string thought;
  std::vector<Call> calls;
  for (const AnswerPart& part : parts) {
    if (part.channel) (*part.channel == Channel::kText ? said : thought) += part.text;
    calls.insert(calls.end(), part.calls.begin(), part.calls.end());
  }
  CHECK(seen.text == said);
  CHECK(seen.thinking == thought);
  CHECK(seen.misfits == 0);
  REQUIRE(seen.calls.size() == calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    CHECK(seen.calls[i].name == calls[i].name);
    CHECK(nlohmann::json::parse(seen.calls[i].arguments) == nlohmann::json(calls[i].arguments));
  }
}

}  // namespace

TEST_CASE("written answers: thinking, text and calls are read back, in every dialect") {
  std::mt19937 random(5);
  for (const Dialect& dialect : all()) {
    const bool is_harmony = dialect.syntax->owns_answer();
    for (int round = 0; round < 60; ++round) {
      const bool in_thinking = !is_harmony && round % 3 == 0;
      std::vector<AnswerPart> parts;
      if (random() % 2 == 0) parts.push_back(thinking("hm, 1 < 2"));
      if (random() % 2 == 0) parts.push_back(prose("Let me see."));
      AnswerPart calls;
      for (size_t i = random() % 3; i > 0; --i) {
        Call call{.name = "put"};
        call.arguments["path"] = random_string(random);
        call.arguments["n"] = static_cast<int>(random() % 9);
        calls.calls.push_back(std::move(call));
      }
      if (!calls.calls.empty()) parts.push_back(std::move(calls));
      if (!parts.empty()) check(dialect, in_thinking, parts);
    }
  }
}

TEST_CASE("written answers: a model without thinking does not think") {
  const std::vector<AnswerPart> parts = {thinking("hm"), prose("Yes.")};
  CHECK(write_answer(*find("json_tools"), {}, parts) == "Yes.");
}
