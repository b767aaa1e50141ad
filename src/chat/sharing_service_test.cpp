#include "chat/sharing_service.h"

#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chat/testdata/harness.h"

using namespace tandem;
using namespace tandem::chat;

namespace {

/// A service that shares, over a scripted generator; each id's events apart.
struct Sharing {
  explicit Sharing(gen::Fake::Delivery delivery = gen::Fake::Delivery::kOnDemand)
      : harness(delivery), service(harness.service) {
    harness.answer("The answer is long enough to be joined.");
  }

  void submit(const std::string& id, Request asked) {
    asked.id = id;
    const auto accepted = service.submit(std::move(asked), [this, id](const Event& event) {
      const std::lock_guard lock(mutex);
      seen[id][event.choice].add(event);
    });
    REQUIRE(accepted);
    CHECK(accepted->prompt_tokens == harness.service.count_prompt(Harness::request()).value());
  }

  void finish() {
    while (harness.fake.step()) {
    }
  }

  Harness harness;
  SharingService service;
  std::mutex mutex;
  std::map<std::string, std::map<uint32_t, Seen>> seen;
};

/// What a client saw, without when.
std::string told(const Seen& seen) {
  std::string out;
  for (const Event& event : seen.events) {
    if (const auto* delta = std::get_if<Delta>(&event.body)) out += "|" + delta->text;
    if (const auto* end = std::get_if<End>(&event.body)) {
      out += "|end " + std::to_string(end->usage.completion_tokens);
    }
    if (std::holds_alternative<Failed>(event.body)) out += "|failed";
  }
  return out;
}

}  // namespace

TEST_CASE("sharing: who joins at any time sees the same as who was first") {
  for (int steps = 0; steps < 12; ++steps) {
    CAPTURE(steps);
    Sharing sharing;
    sharing.submit("a", Harness::request());
    for (int i = 0; i < steps; ++i) sharing.harness.fake.step();
    sharing.submit("b", Harness::request());
    sharing.finish();
    CHECK(told(sharing.seen["a"][0]) == told(sharing.seen["b"][0]));
    CHECK(sharing.seen["b"][0].ends.size() == 1);
    CHECK(sharing.harness.fake.submitted().size() == 1);
    CHECK(sharing.service.joined() == 1);
    // It is over: the next one has its own.
    sharing.submit("c", Harness::request());
    sharing.finish();
    CHECK(sharing.harness.fake.submitted().size() == 2);
    CHECK(told(sharing.seen["c"][0]) == told(sharing.seen["a"][0]));
  }
}

TEST_CASE("sharing: only what would be answered alike is shared") {
  const auto generations = [](const Request& first, const Request& second) {
    Sharing sharing;
    sharing.submit("a", first);
    sharing.submit("b", second);
    sharing.finish();
    CHECK(sharing.seen["b"][0].ends.size() == 1);
    return sharing.harness.fake.submitted().size();
  };
  const Request greedy = Harness::request();
  Request other = greedy;
  other.client = "somebody else";
  CHECK(generations(greedy, other) == 1);
  other.salt = "another key";
  CHECK(generations(greedy, other) == 2);
  Request chance = greedy;
  chance.sampling.temperature = 1;
  CHECK(generations(chance, chance) == 2);
  chance.seed = 7;
  CHECK(generations(chance, chance) == 1);
  Request other_seed = chance;
  other_seed.seed = 8;
  CHECK(generations(chance, other_seed) == 2);
  Request longer = greedy;
  longer.max_tokens = 30;
  CHECK(generations(greedy, longer) == 2);
  Request guarded = greedy;
  guarded.guards.repeated_span = true;
  CHECK(generations(greedy, guarded) == 2);
}

TEST_CASE("sharing: a cancel leaves the others, and the last one ends the generation") {
  Sharing sharing;
  Request asked = Harness::request();
  asked.choices = 2;
  for (const char* id : {"a", "b", "c"}) sharing.submit(id, asked);
  for (int i = 0; i < 8; ++i) sharing.harness.fake.step();
  CHECK(sharing.service.cancel("a"));
  CHECK(!sharing.service.cancel("a"));
  for (uint32_t choice = 0; choice < 2; ++choice) {
    REQUIRE(sharing.seen["a"][choice].failures.size() == 1);
    CHECK(sharing.seen["a"][choice].failures[0].error.code == ErrorCode::kCancelled);
  }
  CHECK(sharing.harness.fake.cancelled().empty());
  CHECK(sharing.service.cancel("b"));
  CHECK(sharing.service.cancel("c"));
  CHECK(sharing.harness.fake.cancelled().size() == 2);
  // Nobody joins what is about to end.
  sharing.submit("d", asked);
  sharing.finish();
  CHECK(sharing.harness.fake.submitted().size() == 4);
  CHECK(sharing.seen["d"][0].ends.size() == 1);
  for (const char* id : {"a", "b", "c"}) {
    for (uint32_t choice = 0; choice < 2; ++choice) {
      CHECK(sharing.seen[id][choice].last_events() == 1);
    }
  }
  CHECK(!sharing.service.cancel("never"));
}

TEST_CASE("sharing: a sink may cancel its own request") {
  Sharing sharing;
  int last = 0;
  Request asked = Harness::request();
  const auto cancelling = [&](const std::string& id) {
    asked.id = id;
    CHECK(sharing.service.submit(asked, [&, id](const Event& event) {
      if (std::holds_alternative<Delta>(event.body)) sharing.service.cancel(id);
      last += event.is_last();
    }));
  };
  cancelling("a");
  cancelling("b");
  sharing.submit("c", Harness::request());
  sharing.finish();
  CHECK(last == 2);
  CHECK(sharing.seen["c"][0].ends.size() == 1);
}

TEST_CASE("sharing: a refusal is nobody's to join, and ids stay unique") {
  Sharing sharing;
  sharing.harness.reply.refusal = Error{ErrorCode::kBusy, "full"};
  Request asked = Harness::request();
  CHECK(sharing.service.submit(asked, [](const Event&) {}).error().code == ErrorCode::kBusy);
  sharing.harness.reply.refusal.reset();
  sharing.submit("r", Harness::request());
  CHECK(sharing.service.submit(asked, [](const Event&) {}).error().code == ErrorCode::kConflict);
  sharing.finish();
  CHECK(sharing.seen["r"][0].ends.size() == 1);
}

TEST_CASE("sharing: joins and cancels of many threads leave one end for each") {
  std::map<std::string, std::map<uint32_t, Seen>> seen;
  std::mutex mutex;
  {
    Sharing sharing(gen::Fake::Delivery::kOwnThread);
    std::vector<std::thread> clients;
    for (int client = 0; client < 4; ++client) {
      clients.emplace_back([&, client] {
        for (int round = 0; round < 60; ++round) {
          Request asked = Harness::request(std::to_string(client * 1000 + round));
          const std::string id = asked.id;
          CHECK(sharing.service.submit(asked, [&, id](const Event& event) {
            const std::lock_guard lock(mutex);
            seen[id][0].add(event);
          }));
          if (round % 3 == client % 3) sharing.service.cancel(id);
        }
      });
    }
    for (std::thread& client : clients) client.join();
    while (sharing.harness.fake.running() > 0) std::this_thread::yield();
  }
  CHECK(seen.size() == 240);
  for (const auto& [id, choices] : seen) CHECK(choices.at(0).last_events() == 1);
}
