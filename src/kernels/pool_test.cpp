#include "kernels/pool.h"

#include <doctest/doctest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/cores.h"

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

TEST_CASE("pool: long loops are cut at multiples of the quantum") {
  WorkerPool pool(3);
  for (const size_t count : {96U, 97U, 101U, 1000U}) {
    std::atomic<size_t> sum = 0;
    pool.parallel_for(count, [&](size_t begin, size_t end) {
      sum += end - begin;
      CHECK(begin % WorkerPool::kQuantum == 0);
      CHECK((end % WorkerPool::kQuantum == 0 || end == count));
    });
    CHECK(sum == count);
  }
}

TEST_CASE("pool: a slow worker holds up one chunk, not its share") {
  WorkerPool pool(2);
  constexpr size_t kCount = 1024;
  size_t by_caller = 0;
  std::atomic<size_t> by_worker = 0;
  std::atomic<bool> is_stuck = false;
  pool.parallel_for(kCount, [&](size_t begin, size_t end, size_t worker) {
    if (worker == 0) {
      while (!is_stuck) std::this_thread::yield();
      by_caller += end - begin;
    } else {
      is_stuck = true;
      by_worker += end - begin;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  CHECK(by_caller + by_worker == kCount);
  CHECK(by_worker == kCount / 2 / WorkerPool::kChunks);
}

TEST_CASE("pool: workers that come late to a loop find nothing of it, nor of the next one twice") {
  WorkerPool pool(4);
  std::vector<std::atomic<uint32_t>> seen(97);
  for (uint32_t turn = 1; turn <= 20000; ++turn) {
    const size_t count = 1 + turn % seen.size();
    for (size_t i = 0; i < count; ++i) seen[i] = turn - 1;
    std::atomic<bool> good = true;
    pool.parallel_for(count, [&, turn](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        if (seen[i].fetch_add(1) != turn - 1) good = false;
    });
    for (size_t i = 0; i < count; ++i)
      if (seen[i] != turn) good = false;
    REQUIRE(good);
  }
}

TEST_CASE("pool: threads stay on the cores they are given") {
  const std::vector<uint32_t> cores = usable_core_list();
  if (cores.empty()) return;  // this system does not tell
  std::thread([&] {           // the caller is bound too: not the test's thread
    WorkerPool pool(3, detect_cpu_level(), {cores.back()});
    std::atomic<size_t> sum = 0;
    pool.parallel_for(300, [&](size_t begin, size_t end) {
      sum += end - begin;
      CHECK(usable_core_list() == std::vector<uint32_t>{cores.back()});
    });
    CHECK(sum == 300);
  })
      .join();
  CHECK(usable_core_list() == cores);
  CHECK_FALSE(stay_on_core(1U << 20));
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
