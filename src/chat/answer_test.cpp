// What a client sees of an answer: text, thinking, logprobs, however the tokens arrive.
#include "chat/answer.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "chat/testdata/harness.h"

using namespace tandem;
using namespace tandem::chat;

namespace {

const std::string kFamily = "\U0001F468\u200D\U0001F469\u200D\U0001F467";

Request with_stops(std::vector<std::string> stops) {
  Request asked = Harness::request();
  asked.stop = std::move(stops);
  return asked;
}

std::string bytes_of(const std::vector<LogprobEntry>& entries) {
  std::string bytes;
  for (const auto& entry : entries) bytes += entry.token.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("answer: text, ends and usage do not depend on how many tokens an event has") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"hello <think>the " + kFamily + "</think> world", {}},
      {"hello world User: stop and the", {"the", "stop"}},
      {"<think>stop</think>", {"op</"}},
      {"<think>the end", {}},
      {"a<thinking", {"kin"}}};
  for (const auto& [text, stops] : cases) {
    Harness harness;
    harness.answer(text);
    Request asked = with_stops(stops);
    asked.logprobs = 0;
    const Seen expected = harness.run(asked);
    for (size_t size = 2; size <= harness.reply.tokens.size(); ++size) {
      harness.reply.tokens_per_event = size;
      const Seen& seen = harness.run(asked);
      CAPTURE(text);
      CHECK(seen.text == expected.text);
      CHECK(seen.thinking == expected.thinking);
      CHECK(bytes_of(seen.logprobs) == bytes_of(expected.logprobs));
      REQUIRE(seen.ends.size() == 1);
      CHECK(seen.ends[0].stop_text == expected.ends.at(0).stop_text);
      CHECK(seen.ends[0].usage.completion_tokens == expected.ends[0].usage.completion_tokens);
      CHECK(seen.ends[0].usage.reasoning_tokens == expected.ends[0].usage.reasoning_tokens);
    }
  }
}

TEST_CASE("answer: characters split over tokens come whole, with the bytes of each token") {
  const std::string text = kFamily + "\U0001F1E9\U0001F1EA한국어";
  Harness harness;
  harness.answer_bytes(text);
  Request asked = Harness::request();
  asked.logprobs = 2;
  const Seen& seen = harness.run(asked);
  CHECK(seen.text == text);
  CHECK(seen.logprobs.size() == text.size());
  CHECK(bytes_of(seen.logprobs) == text);
  CHECK(seen.logprobs[0].top.size() == 2);
  CHECK(seen.logprobs[0].top[0].bytes == text.substr(0, 1));
  for (const Event& event : seen.events) {
    if (const auto* delta = std::get_if<Delta>(&event.body)) {
      CHECK(delta->text.find("\uFFFD") == std::string::npos);
      CHECK(bytes_of(delta->logprobs) == delta->text);
    }
  }
}

TEST_CASE("answer: a cut inside a character drops its first bytes, and keeps their logprobs") {
  Harness harness;
  harness.answer_bytes("ok " + kFamily);
  Request asked = Harness::request();
  asked.logprobs = 0;
  for (uint32_t limit = 1; limit <= 10; ++limit) {
    asked.max_tokens = limit;
    const Seen& seen = harness.run(asked);
    CAPTURE(limit);
    CHECK(seen.ends.at(0).reason == FinishReason::kLength);
    CHECK(seen.ends[0].usage.completion_tokens == limit);
    CHECK(std::string("ok " + kFamily).starts_with(seen.text));
    CHECK(seen.text.size() == (limit < 7 ? std::min<size_t>(limit, 3) : (limit < 10 ? 7 : 10)));
    CHECK(seen.logprobs.size() == limit);
  }
}

TEST_CASE("answer: stop strings end it on text, exactly, wherever tokens are cut") {
  struct Case {
    std::string text;
    std::vector<std::string> stops;
    std::string delivered;
    std::string stop;
  };
  const std::vector<Case> cases = {
      {"alpha beta gamma delta", {"beta gamma"}, "alpha ", "beta gamma"},
      {"hi\nUser: more", {"\nUser:"}, "hi", "\nUser:"},
      {"ABCDEFGHIJKL", {"DEFGHIJ"}, "ABC", "DEFGHIJ"},
      {"hello world", {"world"}, "hello ", "world"},
      {"xx stop here", {"sto", "stop", "stop it", "st"}, "xx ", "st"},
      {"aab", {"ab", "b"}, "a", "ab"},
      {"naïve é", {"é"}, "naïve ", "é"}};
  for (const Case& item : cases) {
    CAPTURE(item.text);
    for (const bool by_bytes : {false, true}) {
      Harness harness;
      if (by_bytes) {
        harness.answer_bytes(item.text);
      } else {
        harness.answer(item.text);
      }
      const Seen& seen = harness.run(with_stops(item.stops));
      CHECK(seen.text == item.delivered);
      REQUIRE(seen.last_events() == 1);
      REQUIRE(seen.ends.size() == 1);
      CHECK(seen.ends[0].reason == FinishReason::kStop);
      CHECK(seen.ends[0].stop_text == item.stop);
      CHECK(seen.events.back().is_last());
    }
  }
}

TEST_CASE("answer: a stop string ends the generation too, and counts tokens up to its last") {
  Harness harness;
  harness.answer_bytes("abSTOPcdefgh");
  const Seen& seen = harness.run(with_stops({"STOP"}));
  CHECK(harness.fake.cancelled() == std::vector{harness.fake.submitted()[0].id});
  CHECK(harness.fake.running() == 0);
  CHECK(seen.ends.at(0).usage.completion_tokens == 6);
}

TEST_CASE("answer: near misses are delivered in full, whatever ends the answer") {
  for (const std::string text : {"alpha beta gam", "beta beta gamm", "<thin", "a</think"}) {
    Harness harness;
    harness.answer(text);
    CHECK(harness.run(with_stops({"beta gamma"})).text == text);
    Request asked = with_stops({"beta gamma"});
    asked.max_tokens = static_cast<uint32_t>(harness.reply.tokens.size() - 1);
    const Seen& seen = harness.run(asked);
    CHECK(seen.text == text);
    CHECK(seen.ends.at(0).reason == FinishReason::kLength);
  }
}

TEST_CASE("answer: a stop string on the last allowed token is a stop, not a length") {
  Harness harness;
  harness.answer_bytes("abSTOP");
  Request asked = with_stops({"STOP"});
  asked.max_tokens = 6;
  CHECK(harness.run(asked).ends.at(0).reason == FinishReason::kStop);
  asked.max_tokens = 5;
  const Seen& seen = harness.run(asked);
  CHECK(seen.ends.at(0).reason == FinishReason::kLength);
  CHECK(seen.text == "abSTO");
}

TEST_CASE("answer: stop strings count inside thinking") {
  Harness harness;
  harness.answer("<think>hello world</think>the");
  const Seen& seen = harness.run(with_stops({"world"}));
  CHECK(seen.thinking == "hello ");
  CHECK(seen.text.empty());
  CHECK(seen.ends.at(0).stop_text == "world");
  CHECK(seen.ends[0].usage.reasoning_tokens == 2);
}

TEST_CASE("answer: logprobs cover delivered text and nothing past a stop or of a marker") {
  Harness harness;
  harness.answer("<think>hello</think> world User: the");
  Request asked = with_stops({"er:"});
  asked.logprobs = 0;
  const Seen& seen = harness.run(asked);
  CHECK(seen.text == " world Us");
  REQUIRE_FALSE(seen.logprobs.empty());
  const std::string bytes = bytes_of(seen.logprobs);
  CHECK(bytes.starts_with("hello world"));
  CHECK(bytes.find("think") == std::string::npos);
  CHECK(bytes.find(" the") == std::string::npos);
}

TEST_CASE("answer: a resumed generation repeats Started without changing what was cached") {
  Harness harness;
  const auto rules = std::make_shared<AnswerRules>(AnswerRules{
      .tokenizer = harness.model.tokenizer,
      .stop_ids = harness.model.eos,
      .stops =
          std::make_shared<const StopRules>(std::vector<std::string>(), std::vector<std::string>()),
      .parsing = std::make_shared<const dialect::Rules>(),
      .prompt_tokens = 5});
  Answer answer(rules);
  CHECK(answer.take({1, gen::Started{2}}).empty());
  CHECK(answer.take({1, gen::Prefilled{5, 5}}).size() == 1);
  const auto id = harness.encode("hello").front();
  CHECK(answer.take({1, gen::Tokens{{{.id = id}}}}).size() == 1);
  CHECK(answer.take({1, gen::Started{6}}).empty());
  CHECK(answer.take({1, gen::Prefilled{6, 6}}).empty());
  const auto last = answer.take({1, gen::Finished{}});
  REQUIRE(last.size() == 1);
  CHECK(std::get<End>(last[0]).usage.cached_tokens == 2);
  CHECK(answer.done());
  CHECK(answer.take({1, gen::Cancelled{}}).empty());
}
