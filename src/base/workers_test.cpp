#include "base/workers.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>

using namespace tandem;

TEST_CASE("workers: every task runs once, also those that wait when they end") {
  std::atomic<int> sum{0};
  {
    Workers workers(3);
    for (int i = 1; i <= 500; ++i) {
      workers.run([&sum, i] { sum += i; });
    }
  }
  CHECK(sum == 500 * 501 / 2);
}

TEST_CASE("workers: a task that blocks leaves the others to other threads") {
  Workers workers(2);
  std::promise<void> go;
  std::promise<void> done;
  workers.run([&] { go.get_future().wait(); });
  workers.run([&] { done.set_value(); });
  CHECK(done.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  go.set_value();
}
