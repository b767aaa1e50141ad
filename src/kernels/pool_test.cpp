#include "kernels/pool.h"

#include <doctest/doctest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace tandem::kernels;

TEST_CASE("pool: a loop covers every index once, for any count and number of threads") {
  for (size_t threads = 1; threads <= 5; ++threads) {
    WorkerPool pool(threads);
    for (size_t count = 0; count < 40; ++count) {
      std::vector<std::atomic<int>> seen(count);
      pool.parallel_for(count, [&](size_t begin, size_t end, size_t worker) {
        CHECK(worker < threads);
        for (size_t i = begin; i < end; ++i) ++seen[i];
      });
      for (const auto& times : seen) CHECK(times == 1);
    }
  }
}

TEST_CASE("pool: what workers wrote is visible after the loop, over many loops in a row") {
  WorkerPool pool(3);
  std::vector<size_t> values(300);
  for (size_t turn = 1; turn <= 3000; ++turn) {
    pool.parallel_for(values.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) values[i] += turn;
    });
  }
  for (const size_t value : values) CHECK(value == 3000 * 3001 / 2);
}

TEST_CASE("pool: loops work after the workers went to sleep") {
  WorkerPool pool(3);
  for (int turn = 0; turn < 20; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than workers spin
    std::atomic<size_t> sum = 0;
    pool.parallel_for(10, [&](size_t begin, size_t end) { sum += end - begin; });
    CHECK(sum == 10);
  }
}

TEST_CASE("pool: an idle pool uses no CPU") {
  WorkerPool pool(4);
  pool.parallel_for(4, [](size_t, size_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto cpu_time = [] {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto before = cpu_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(cpu_time() - before < std::chrono::milliseconds(5));
}
