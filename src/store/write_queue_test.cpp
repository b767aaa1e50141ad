#include "store/write_queue.h"

#include <doctest/doctest.h>

#include <future>

#include "store/folder_test.h"

namespace tandem::store {
namespace {

using std::chrono::milliseconds;

TEST_CASE("write queue: what was left is there when it has settled, the last word last") {
  TestFolder folder;
  const auto database = Database::open(folder.options()).value();
  BlobTable table(*database, "t");
  WriteQueue queue;
  for (int i = 0; i < 100; ++i) CHECK(queue.put(table, "", "k", std::to_string(i)));
  REQUIRE(queue.settle(milliseconds(10'000)));
  CHECK(table.get("", "k").value() == "99");
  CHECK(queue.failed() == 0);
}

TEST_CASE("write queue: its end writes what waits") {
  TestFolder folder;
  const auto database = Database::open(folder.options()).value();
  BlobTable table(*database, "t");
  {
    WriteQueue queue;
    for (int i = 0; i < 50; ++i) CHECK(queue.put(table, "", std::to_string(i), "v"));
  }
  CHECK(table.newest("", 100)->size() == 50);
}

TEST_CASE("write queue: nobody waits for a slow disk, and what is too much is dropped") {
  std::promise<void> slow;
  WriteQueue queue({.max_tasks = 2, .max_bytes = 100});
  CHECK(queue.post(1, [done = slow.get_future().share()]() -> Status {
    done.wait();
    return {};
  }));
  CHECK_FALSE(queue.post(101, [] { return Status(); }));
  int taken = 0;
  for (int i = 0; i < 5; ++i) taken += queue.post(1, [] { return Status(); }) ? 1 : 0;
  CHECK((taken == 1 || taken == 2));  // one less while the first was not begun yet
  CHECK(queue.dropped() == static_cast<uint64_t>(6 - taken));
  CHECK_FALSE(queue.settle(milliseconds(1)));
  slow.set_value();
  CHECK(queue.settle(milliseconds(10'000)));
  CHECK(queue.post(100, [] { return Status(); }));
}

TEST_CASE("write queue: a failed write is counted and the next one runs") {
  WriteQueue queue;
  CHECK(queue.post(1, [] { return Status(Error{ErrorCode::kIo, "the disk is full"}); }));
  bool ran = false;
  CHECK(queue.post(1, [&]() -> Status {
    ran = true;
    return {};
  }));
  REQUIRE(queue.settle(milliseconds(10'000)));
  CHECK(ran);
  CHECK(queue.failed() == 1);
}

TEST_CASE("write queue: tables get no older while nothing is put") {
  TestFolder folder;
  const auto database = Database::open(folder.options()).value();
  BlobTable table(*database, "t", {.max_age = std::chrono::seconds(1)});
  REQUIRE(table.put("", "k", "v"));
  folder.now += 2'000'000;
  WriteQueue queue({.trim_period = milliseconds(1)});
  queue.keep_trimmed(table);
  for (int i = 0; i < 1000 && !database->figures()->empty(); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  CHECK(database->figures()->empty());
}

}  // namespace
}  // namespace tandem::store
