#include "control/event_loop.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tandem::control {
namespace {

using namespace std::chrono_literals;

TEST_CASE("event loop: tasks of each thread run in their order, all before stop returns") {
  EventLoop loop(1ms, [] {});
  std::vector<int> seen[3];
  for (int i = 0; i < 10; ++i) CHECK(loop.post([&, i] { seen[0].push_back(i); }));
  loop.start();
  std::vector<std::thread> threads;
  for (int t : {1, 2}) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) loop.post([&, t, i] { seen[t].push_back(i); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  loop.stop();
  CHECK(seen[0].size() == 10);
  for (const auto& numbers : seen) {
    for (size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == static_cast<int>(i));
  }
  CHECK(seen[1].size() + seen[2].size() == 2000);
  CHECK(!loop.post([] {}));
}

TEST_CASE("event loop: it ticks while idle and while busy") {
  std::atomic<int> ticks = 0;
  EventLoop loop(1ms, [&] { ++ticks; });
  loop.start();
  int rounds = 0;
  while (ticks < 5 && rounds < 5000) CHECK(loop.run([&] { ++rounds; }, 5s));
  CHECK(ticks >= 5);
}

TEST_CASE("event loop: waiting for a task ends when its time is over or the loop is stopped") {
  EventLoop loop(1s, [] {});
  loop.start();
  std::atomic<bool> go_on = false;
  loop.post([&] {
    while (!go_on) std::this_thread::yield();
  });
  CHECK(!loop.run([] {}, 5ms));
  go_on = true;
  CHECK(loop.run([] {}, 5s));
  loop.stop();
  CHECK(!loop.run([] {}, 5s));
}

}  // namespace
}  // namespace tandem::control
