#include "gen/fake.h"

#include <doctest/doctest.h>

#include <future>
#include <vector>

using namespace tandem;
using gen::Event;
using gen::Fake;
using gen::FakeReply;
using gen::FinishReason;
using gen::TokenId;

namespace {

constexpr gen::Limits kLimits{.vocab = 100, .max_context = 16};

std::vector<Event> run(FakeReply reply, gen::Request request) {
  Fake fake(kLimits, [&](const gen::Request&) { return reply; }, Fake::Delivery::kOnDemand);
  std::vector<Event> events;
  REQUIRE(
      fake.submit(std::move(request), [&](Event event) { events.push_back(std::move(event)); }));
  while (fake.step()) {
  }
  return events;
}

std::vector<TokenId> ids(const std::vector<Event>& events) {
  std::vector<TokenId> result;
  for (const Event& event : events) {
    if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
      for (const auto& token : tokens->tokens) result.push_back(token.id);
    }
  }
  return result;
}

gen::Request request() { return {.id = 1, .prompt = {7, 8}, .sampling = {}}; }

}  // namespace

TEST_CASE("fake: a reply is started, prefilled, drawn and finished") {
  const auto events =
      run({.tokens = {1, 2, 3}, .cached_tokens = 1, .tokens_per_event = 2}, request());
  REQUIRE(events.size() == 5);
  CHECK(events[0].body == decltype(Event::body){gen::Started{1}});
  CHECK(events[1].body == decltype(Event::body){gen::Prefilled{2, 2}});
  CHECK(ids(events) == std::vector<TokenId>{1, 2, 3});
  CHECK(events[4].body == decltype(Event::body){gen::Finished{FinishReason::kStop}});
}

TEST_CASE("fake: stop ids, max_tokens, min_tokens and emitted are honoured") {
  auto asked = request();
  asked.stop_ids = {2};
  CHECK(ids(run({.tokens = {1, 2, 3}}, asked)) == std::vector<TokenId>{1, 2});
  asked.min_tokens = 2;
  CHECK(ids(run({.tokens = {1, 2, 3}}, asked)) == std::vector<TokenId>{1, 2, 3});
  asked.min_tokens = 0;
  asked.ignore_eos = true;
  asked.max_tokens = 2;
  const auto events = run({.tokens = {1, 2, 3}}, asked);
  CHECK(ids(events) == std::vector<TokenId>{1, 2});
  CHECK(events.back().body == decltype(Event::body){gen::Finished{FinishReason::kLength}});
  asked.emitted = {1};
  CHECK(ids(run({.tokens = {1, 2, 3}}, asked)) == std::vector<TokenId>{2});
}

TEST_CASE("fake: failures, refusals and conflicts are reported as the contract says") {
  const Error error{.code = ErrorCode::kPeerLost, .message = "gone"};
  CHECK(run({.tokens = {1}, .failure = error}, request()).back().body ==
        decltype(Event::body){gen::Failed{error}});
  Fake fake(
      kLimits,
      [&](const gen::Request& asked) {
        return asked.id == 9 ? FakeReply{.refusal = error} : FakeReply{.hangs = true};
      },
      Fake::Delivery::kOnDemand);
  auto asked = request();
  const auto ignore = [](const Event&) {};
  REQUIRE(fake.submit(asked, ignore));
  CHECK(fake.submit(asked, ignore).error().code == ErrorCode::kConflict);
  asked.id = 9;
  CHECK(fake.submit(asked, ignore).error() == error);
  asked.id = 2;
  asked.prompt.resize(16);
  CHECK(fake.submit(asked, ignore).error().code == ErrorCode::kTooLarge);
}

TEST_CASE("fake: a hanging reply ends when cancelled, from its own thread") {
  Fake fake(kLimits, [](const gen::Request&) { return FakeReply{.tokens = {1}, .hangs = true}; });
  std::promise<void> drawn;
  std::promise<Event> last;
  REQUIRE(fake.submit(request(), [&](Event event) {
    if (std::holds_alternative<gen::Tokens>(event.body)) drawn.set_value();
    if (event.is_last()) last.set_value(std::move(event));
  }));
  drawn.get_future().wait();
  fake.cancel(1);
  CHECK(std::holds_alternative<gen::Cancelled>(last.get_future().get().body));
  CHECK(fake.running() == 0);
}

TEST_CASE("fake: what runs when it goes is failed, once") {
  int last = 0;
  {
    Fake fake(kLimits, [](const gen::Request&) { return FakeReply{.hangs = true}; });
    REQUIRE(fake.submit(request(), [&](const Event& event) { last += event.is_last() ? 1 : 0; }));
  }
  CHECK(last == 1);
}
