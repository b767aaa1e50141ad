// Requests with a grammar among others: bound, drawn alike whoever runs beside them, and failed
// rather than drawn freely.
#include "engine/constraint_test.h"

#include <map>

namespace tandem::engine::constraints {
namespace {

TEST_CASE("constraints: bound and plain rows in one batch get what each gets alone") {
  for (const bool draws : {false, true}) {
    World world({.pages = 60, .depth = draws ? 3U : 1U, .draws = draws});
    std::map<gen::RequestId, Reader> readers;
    std::vector<gen::Request> requests;
    for (gen::RequestId id = 1; id <= 24; ++id) {
      const auto source = std::to_string(2 + id % 5) + " " + std::to_string(3 + id);
      requests.push_back(request(id, id % 2 == 0 ? std::optional(source) : std::nullopt,
                                 id % 3 == 0 ? 0.0F : 1.5F));
      if (id % 4 == 0) requests.back().logprobs = 2;
      if (id % 5 == 0) requests.back().sampling.repetition = {.value = 1.2F};
    }
    for (const gen::Request& each : requests) {
      REQUIRE(world.engine->submit(each, readers[each.id].sink()));
    }
    for (const gen::Request& each : requests) {
      CAPTURE(each.id);
      CHECK(std::holds_alternative<gen::Finished>(readers[each.id].wait().body));
      CHECK(readers[each.id].ids == oracle(each));
    }
  }
}

TEST_CASE("constraints: an answer that goes on in another epoch is the whole one") {
  const gen::Request whole = request(4, "3 12");
  const Ids expected = oracle(whole);
  REQUIRE(expected.size() == 13);
  for (size_t cut = 0; cut <= expected.size(); ++cut) {
    World world;
    gen::Request rest = whole;
    rest.emitted.assign(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(cut));
    Reader reader;
    REQUIRE(world.engine->submit(rest, reader.sink()));
    CHECK(std::holds_alternative<gen::Finished>(reader.wait().body));
    Ids joined = rest.emitted;
    joined.insert(joined.end(), reader.ids.begin(), reader.ids.end());
    CHECK(joined == expected);
  }
}

TEST_CASE("constraints: what goes wrong fails the request, with no token past it") {
  World world;
  struct Case {
    std::string source;
    ErrorCode code;
    size_t tokens;
    Ids emitted;
  };
  const Case cases[] = {{"bad", ErrorCode::kInvalid, 0, {}},
                        {"3 12 5", ErrorCode::kTooLarge, 5, {}},
                        {"3 12 0", ErrorCode::kTooLarge, 0, {}},
                        {"3 12", ErrorCode::kInvalid, 0, {1}}};
  gen::RequestId id = 100;
  for (const Case& at : cases) {
    Reader reader;
    gen::Request bad = request(++id, at.source);
    bad.emitted = at.emitted;
    REQUIRE(world.engine->submit(bad, reader.sink()));
    const gen::Event last = reader.wait();
    REQUIRE(std::holds_alternative<gen::Failed>(last.body));
    CHECK(std::get<gen::Failed>(last.body).error.code == at.code);
    CHECK(reader.ids.size() == at.tokens);
  }
  Reader after;
  REQUIRE(world.engine->submit(request(200, {}), after.sink()));
  CHECK(std::holds_alternative<gen::Finished>(after.wait().body));
}

TEST_CASE("constraints: while one is prepared others run, and it can be cancelled") {
  World world({}, false);
  Reader bound, cancelled, plain;
  REQUIRE(world.engine->submit(request(1, "2 4"), bound.sink()));
  REQUIRE(world.engine->submit(request(2, "2 4"), cancelled.sink()));
  REQUIRE(world.engine->submit(request(3, {}), plain.sink()));
  CHECK(std::holds_alternative<gen::Finished>(plain.wait().body));
  world.engine->cancel(2);
  CHECK(std::holds_alternative<gen::Cancelled>(cancelled.wait().body));
  // Figures follow events.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (world.engine->stats().schedule.waiting != 1 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(world.engine->stats().schedule.waiting == 1);
  world.factory.open();
  CHECK(std::holds_alternative<gen::Finished>(bound.wait().body));
  CHECK(bound.ids == oracle(request(1, "2 4")));
}

TEST_CASE("constraints: an engine may end while one is prepared") {
  World world({}, false);
  Reader reader;
  REQUIRE(world.engine->submit(request(1, "2 4"), reader.sink()));
  world.engine.reset();
  CHECK(std::holds_alternative<gen::Failed>(reader.wait().body));
}

TEST_CASE("constraints: min_tokens holds back the end only while something else may come") {
  World world;
  gen::Request early = request(1, "2 4");
  early.min_tokens = 20;
  Reader reader;
  REQUIRE(world.engine->submit(early, reader.sink()));
  CHECK(std::holds_alternative<gen::Finished>(reader.wait().body));
  CHECK(reader.ids.size() == 5);
  CHECK(reader.ids.back() == kEnd);
}

TEST_CASE("constraints: requests that could not be bound to their end are refused") {
  World world;
  const auto code = [&](const gen::Request& bad) {
    const Status taken = world.engine->submit(bad, [](auto) {});
    REQUIRE_FALSE(taken);
    return taken.error().code;
  };
  gen::Request endless = request(1, "2 4");
  endless.ignore_eos = true;
  CHECK(code(endless) == ErrorCode::kInvalid);
  endless = request(1, "2 4");
  endless.stop_ids.clear();
  CHECK(code(endless) == ErrorCode::kInvalid);
  CHECK(code(request(1, std::string(2 << 20, 'a'))) == ErrorCode::kInvalid);
  FakeRunner runner({});
  Engine plain(runner, {});
  std::promise<void> started;
  plain.reset(1, [&](const Status&) { started.set_value(); });
  started.get_future().get();
  CHECK(plain.submit(request(1, "2 4"), [](auto) {}).error().code == ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace tandem::engine::constraints
