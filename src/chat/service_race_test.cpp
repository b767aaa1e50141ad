// One last event for each choice, whatever happens at the same time.
#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chat/testdata/harness.h"

using namespace tandem;
using namespace tandem::chat;

namespace {

/// Counts last events, and waits for all of them.
class LastEvents {
 public:
  explicit LastEvents(size_t choices) : counts_(choices) {}

  Sink sink() {
    return [this](const Event& event) {
      if (!event.is_last()) return;
      const std::lock_guard lock(mutex_);
      ++counts_[event.choice];
      changed_.notify_all();
    };
  }

  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [this] {
      for (const int count : counts_) {
        if (count == 0) return false;
      }
      return true;
    });
  }

  std::vector<int> counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> counts_;
};

}  // namespace

TEST_CASE("service: cancels from other threads race with ends, and each choice ends once") {
  constexpr uint32_t kChoices = 3;
  std::vector<std::unique_ptr<LastEvents>> rounds;
  {
    Harness harness(gen::Fake::Delivery::kOwnThread);
    harness.answer("hello world stop and the end");
    for (int round = 0; round < 200; ++round) {
      auto& last = *rounds.emplace_back(std::make_unique<LastEvents>(kChoices));
      Request asked = Harness::request("r" + std::to_string(round));
      asked.choices = kChoices;
      if (round % 2 == 0) asked.stop = {"stop"};
      std::atomic<bool> go = false;
      std::thread canceller([&] {
        go.wait(false);
        for (int i = 0; i < round % 5; ++i) std::this_thread::yield();
        harness.service.cancel(asked.id);
      });
      go = true;
      go.notify_all();
      REQUIRE(harness.service.submit(asked, last.sink()));
      canceller.join();
      harness.service.cancel(asked.id);
      REQUIRE(last.wait());
    }
  }
  for (const auto& last : rounds) {
    for (const int count : last->counts()) CHECK(count == 1);
  }
}

TEST_CASE("service: requests that run at once do not mix") {
  Harness harness(gen::Fake::Delivery::kOwnThread);
  harness.script = [&](const gen::Request& request) {
    gen::FakeReply reply;
    reply.tokens = harness.encode("answer to " + std::to_string(request.sampling.seed));
    reply.tokens.push_back(harness.model.eos.front());
    return reply;
  };
  constexpr uint64_t kRequests = 24;
  std::vector<Seen> seen(kRequests);
  LastEvents last(kRequests);
  for (uint64_t i = 0; i < kRequests; ++i) {
    Request asked = Harness::request(std::to_string(i));
    asked.seed = i;
    REQUIRE(harness.service.submit(asked, [&, i, count = last.sink()](Event event) {
      seen[i].add(event);
      event.choice = static_cast<uint32_t>(i);
      count(event);
    }));
  }
  REQUIRE(last.wait());
  for (uint64_t i = 0; i < kRequests; ++i) CHECK(seen[i].text == "answer to " + std::to_string(i));
}
