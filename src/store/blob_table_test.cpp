#include "store/blob_table.h"

#include <doctest/doctest.h>

#include <atomic>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "store/folder_test.h"

namespace tandem::store {
namespace {

struct Rig {
  explicit Rig(Limits limits = {})
      : database(Database::open(folder.options()).value()), table(*database, "t", limits) {}

  /// The keys that are there, without using them.
  std::string keys() {
    std::string out;
    const auto found = table.newest("", 100);
    for (const Blob& blob : *found) out += blob.key;
    return out;
  }

  void put(const std::string& key, size_t size = 1) {
    folder.now += 1'000'000;
    REQUIRE(table.put("", key, std::string(size, 'x')));
  }

  TestFolder folder;
  std::unique_ptr<Database> database;
  BlobTable table;
};

TEST_CASE("blob table: owners see nothing of each other") {
  Rig rig;
  REQUIRE(rig.table.put("a", "k", "of a"));
  REQUIRE(rig.table.put("b", "k", "of b"));
  CHECK(rig.table.get("a", "k").value() == "of a");
  CHECK(rig.table.get("b", "k").value() == "of b");
  CHECK_FALSE(rig.table.erase("c", "k").value());
  CHECK(rig.table.erase("a", "k").value());
  CHECK_FALSE(rig.table.get("a", "k").value());
  CHECK(rig.table.newest("b", 9)->size() == 1);
}

TEST_CASE("blob table: a later value takes the earlier one's place") {
  Rig rig;
  CHECK_FALSE(rig.table.replace("", "k", "v").value());
  CHECK_FALSE(rig.table.get("", "k").value());
  rig.put("k", 10);
  CHECK(rig.table.replace("", "k", "v").value());
  CHECK(rig.table.get("", "k").value() == "v");
  REQUIRE(rig.table.put("", "k", ""));
  CHECK(rig.table.get("", "k").value() == "");
  CHECK(rig.database->figures().value().at(0).bytes == 1);
}

TEST_CASE("blob table: the newest come first") {
  Rig rig;
  for (const char* key : {"a", "b", "c"}) rig.put(key);
  CHECK(rig.keys() == "cba");
  CHECK(rig.table.newest("", 1)->at(0).key == "c");
}

TEST_CASE("blob table: of too many the least recently used go first") {
  Rig rig({.max_entries = 3});
  for (const char* key : {"a", "b", "c"}) rig.put(key);
  rig.folder.now += 1;
  CHECK(rig.table.get("", "a").value());
  rig.put("d");
  CHECK(rig.keys() == "dca");
  rig.put("e");
  CHECK(rig.keys() == "eda");
}

TEST_CASE("blob table: of too many bytes the least recently used go first") {
  Rig rig({.max_bytes = 100});
  rig.put("a", 40);
  rig.put("b", 40);
  rig.put("c", 58);
  CHECK(rig.keys() == "cb");
  rig.put("d", 99);
  CHECK(rig.keys() == "d");
  const Status refused = rig.table.put("", "e", std::string(100, 'x'));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kTooLarge);
  CHECK(rig.keys() == "d");
}

TEST_CASE("blob table: what is too old is not given, and goes") {
  Rig rig({.max_age = std::chrono::seconds(10)});
  rig.put("a");
  rig.folder.now += 10'000'000;
  CHECK(rig.table.get("", "a").value());
  rig.folder.now += 1;
  CHECK_FALSE(rig.table.get("", "a").value());
  CHECK(rig.keys().empty());
  CHECK(rig.database->figures()->size() == 1);
  REQUIRE(rig.table.trim());
  CHECK(rig.database->figures()->empty());
}

TEST_CASE("blob table: the bounds hold after any puts, reads and erasures") {
  Rig rig({.max_bytes = 2000, .max_entries = 20});
  std::mt19937 random(7);
  for (int step = 0; step < 2000; ++step) {
    const std::string key = std::to_string(random() % 40);
    const std::string owner = std::to_string(random() % 3);
    rig.folder.now += 1;
    switch (random() % 4) {
      case 0:
        REQUIRE(rig.table.get(owner, key));
        break;
      case 1:
        REQUIRE(rig.table.erase(owner, key));
        break;
      default:
        REQUIRE(rig.table.put(owner, key, std::string(random() % 300, 'x')));
        REQUIRE(rig.table.get(owner, key).value());
    }
    const auto figures = rig.database->figures().value();
    if (figures.empty()) continue;
    CHECK(figures[0].entries <= 20);
    CHECK(figures[0].bytes <= 2000);
  }
  // The sums that triggers keep are those of the rows.
  uint64_t bytes = 0;
  uint64_t entries = 0;
  for (const char* owner : {"0", "1", "2"}) {
    const auto found = rig.table.newest(owner, 100);
    for (const Blob& blob : *found) {
      bytes += blob.value.size() + blob.key.size() + 1;
      ++entries;
    }
  }
  CHECK(rig.database->figures().value().at(0).bytes == bytes);
  CHECK(rig.database->figures().value().at(0).entries == entries);
}

TEST_CASE("blob table: what was erased is gone from the disk") {
  Rig rig;
  REQUIRE(rig.table.put("", "k", "a secret word"));
  CHECK(rig.folder.holds("secret word"));
  CHECK(rig.table.erase("", "k").value());
  CHECK_FALSE(rig.folder.holds("secret word"));
}

TEST_CASE("blob table: threads, and processes beside each other, lose nothing") {
  Rig rig;
  const auto other = Database::open(rig.folder.options()).value();
  BlobTable there(*other, "t");
  std::atomic<int> wrong = 0;
  const auto work = [&](BlobTable& table, const std::string& name) {
    for (int i = 0; i < 100; ++i) {
      const std::string key = name + std::to_string(i);
      if (!table.put("", key, key)) ++wrong;
      const auto got = table.get("", key);
      if (!got || *got != key) ++wrong;
    }
  };
  std::thread a([&] { work(rig.table, "a"); });
  std::thread b([&] { work(rig.table, "b"); });
  std::thread c([&] { work(there, "c"); });
  for (std::thread* thread : {&a, &b, &c}) thread->join();
  CHECK(wrong == 0);
  CHECK(rig.table.newest("", 1000)->size() == 300);
}

TEST_CASE("blob table: values that name each other are read as one, and count as used") {
  TestFolder folder;
  const auto database = Database::open(folder.options()).value();
  const BlobTable table(*database, "t", {.max_entries = 4});
  for (const char* key : {"c", "b", "a", "x"}) {
    ++folder.now;
    const std::string next = std::string(1, static_cast<char>(key[0] + 1));
    REQUIRE(table.put("", key, key[0] == 'c' ? "" : next));
  }
  ++folder.now;
  std::string order;
  const auto next = [&](const std::string& key,
                        const std::optional<std::string>& value) -> Result<std::string> {
    order += key;
    if (!value) return Error{ErrorCode::kNotFound, key};
    return *value;
  };
  CHECK(table.follow("", "a", next));
  CHECK(order == "abc");
  // Whoever is not among them goes first.
  ++folder.now;
  REQUIRE(table.put("", "y", "v"));
  CHECK_FALSE(table.has("", "x").value());
  CHECK(table.has("", "c").value());
  // What the caller says of a value is no damage of the file.
  const Status refused =
      table.follow("", "a", [](const std::string&, const std::optional<std::string>&) {
        return Result<std::string>(Error{ErrorCode::kCorrupt, "cannot be read"});
      });
  CHECK(refused.error().code == ErrorCode::kCorrupt);
  CHECK(database->damaged() == 0);
  CHECK(table.follow("", "none", next).error().code == ErrorCode::kNotFound);
}

TEST_CASE("blob table: a value is changed as one step, or stays as it was") {
  TestFolder folder;
  const auto database = Database::open(folder.options()).value();
  const BlobTable table(*database, "t", {.max_bytes = 100});
  const auto add = [&](const std::string& more) {
    return table.change("o", "k", [&](const std::string& value) -> Result<std::string> {
      if (more.empty()) return Error{ErrorCode::kCorrupt, "no"};
      return value + more;
    });
  };
  CHECK_FALSE(add("x").value());
  REQUIRE(table.put("o", "k", "a"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5; ++n) CHECK(add("x").value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(table.get("o", "k").value() == "a" + std::string(20, 'x'));
  CHECK(add("").error().code == ErrorCode::kCorrupt);
  CHECK(add(std::string(100, 'y')).error().code == ErrorCode::kTooLarge);
  CHECK(table.get("o", "k").value() == "a" + std::string(20, 'x'));
  CHECK(database->damaged() == 0);
}

TEST_CASE("blob table: whoever visits values may throw, and the next write goes on") {
  Rig rig;
  rig.put("k");
  const auto fails = [](const std::string&,
                        const std::optional<std::string>&) -> Result<std::string> {
    throw std::bad_alloc();
  };
  CHECK_THROWS_AS((void)rig.table.follow("", "k", fails), std::bad_alloc);
  CHECK(rig.table.put("", "l", "v"));
  const auto edit = [](const std::string&) -> Result<std::string> { throw std::bad_alloc(); };
  CHECK_THROWS_AS((void)rig.table.change("", "k", edit), std::bad_alloc);
  CHECK(rig.table.put("", "m", "v"));
}

}  // namespace
}  // namespace tandem::store
