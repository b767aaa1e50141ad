// What erasing leaves of a state: nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "store/blob_table.h"
#include "store/folder_test.h"

namespace tandem::store {
namespace {

TEST_CASE(
    "state file: a purge leaves nothing, in the log neither, also while another has it open") {
  TestFolder folder;
  const auto server = opened(folder);
  BlobTable table(*server, "t");
  for (int i = 0; i < 20; ++i) REQUIRE(table.put("o", fmt::format("key{}", i), "a secret word"));
  CHECK(folder.holds("secret word"));
  folder.now += 10;
  {
    const auto command = Database::open_existing(folder.options());
    REQUIRE(command);
    REQUIRE((*command)->purge());
    CHECK((*command)->figures()->empty());
  }
  CHECK_FALSE(folder.holds("secret word"));
  CHECK_FALSE(folder.holds("key1"));
  CHECK_FALSE(table.get("o", "key1").value());
  // What was begun before does not come back.
  CHECK(table.put("o", "late", "a secret word", folder.now - 5));
  CHECK_FALSE(table.get("o", "late").value());
  CHECK(table.put("o", "new", "v", folder.now + 5));
  CHECK(table.get("o", "new").value());
}

TEST_CASE("state file: a purge takes a damaged file too, met by it or set aside before") {
  TestFolder folder;
  {
    const auto database = opened(folder);
    BlobTable table(*database, "t");
    for (int i = 0; i < 200; ++i) {
      REQUIRE(table.put("", fmt::format("a secret {}", i), std::string(3000, 'x')));
    }
  }
  const auto server = opened(folder);
  const BlobTable table(*server, "t");
  // Not those in front, which are read first.
  overwrite(server->file(), 300'000, 300'000);
  SUBCASE("met") {}
  SUBCASE("before") {
    CHECK_FALSE(server->check());
    CHECK(folder.holds("a secret"));
    CHECK(server->purge("t").value().left.size() == 1);
    CHECK(folder.holds("a secret"));
  }
  folder.now += 10;
  const auto purged = Database::purge_existing(folder.options());
  REQUIRE(purged);
  CHECK(purged->damaged.size() == 1);
  CHECK_FALSE(folder.holds("a secret"));
  CHECK(aside(folder).empty());
  // What was begun before does not come back, to whoever has the new one open.
  CHECK(table.put("", "late", "v", folder.now - 5));
  CHECK_FALSE(table.get("", "late").value());
  CHECK(table.put("", "new", "v"));
  CHECK(table.get("", "new").value());
}

TEST_CASE("state file: a purge needs no room on the disk, also while a server has it open") {
  TestFolder folder;
  const auto server = opened(folder);
  const BlobTable table(*server, "t");
  for (int i = 0; i < 100; ++i) {
    REQUIRE(table.put("", fmt::format("a secret {}", i), std::string(3000, 'x')));
  }
  folder.now += 10;
  {
    const SmallDisk disk(100'000);  // room for an empty one
    CHECK(table.erase("", "a secret 1").error().code == ErrorCode::kIo);
    const auto purged = Database::purge_existing(folder.options());
    REQUIRE_MESSAGE(purged, (purged ? "" : purged.error().message));
    CHECK(purged->whole);
    CHECK_FALSE(folder.holds("a secret"));
    CHECK_FALSE(table.get("", "a secret 1").value());
    CHECK(table.put("", "late", "v", folder.now - 5));
    CHECK_FALSE(table.get("", "late").value());
    CHECK(table.put("", "new", "v"));
    CHECK(table.get("", "new").value());
  }
  REQUIRE(table.put("", "another secret", "v"));
  {
    const SmallDisk disk(1000);  // for none
    const auto purged = Database::purge_existing(folder.options());
    REQUIRE_FALSE(purged);
    CHECK(purged.error().message.find("was erased, but no new one") != std::string::npos);
    CHECK_FALSE(folder.holds("another secret"));
  }
  CHECK(table.put("", "new", "v"));
}

TEST_CASE("state file: one record is erased on a full disk where the log has room once emptied") {
  TestFolder folder;
  const auto database = opened(folder);
  const BlobTable table(*database, "t");
  for (int i = 0; i < 20; ++i) REQUIRE(table.put("", std::to_string(i), std::string(3000, 'x')));
  database->clear_log();
  for (int i = 0; i < 20; ++i) REQUIRE(table.replace("", std::to_string(i), "a secret"));
  const auto log = std::filesystem::file_size(database->file().string() + "-wal");
  const SmallDisk disk(log);
  CHECK(table.put("", "more", std::string(20'000, 'x')).error().code == ErrorCode::kIo);
  CHECK(table.erase("", "7").value());
  CHECK_FALSE(table.get("", "7").value());
}

TEST_CASE("state file: a purge says when the log is read, and may hold what was erased") {
  TestFolder folder;
  DatabaseOptions options = folder.options();
  options.busy_timeout = std::chrono::milliseconds(1);
  const auto database = Database::open(options).value();
  REQUIRE(BlobTable(*database, "t").put("", "k", "a secret word"));
  sqlite3* reader = nullptr;
  REQUIRE(sqlite3_open(database->file().c_str(), &reader) == SQLITE_OK);
  const auto run = [&](const char* sql) {
    CHECK(sqlite3_exec(reader, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  };
  run("BEGIN; SELECT * FROM blobs");
  const auto purged = database->purge();
  REQUIRE_FALSE(purged);
  CHECK(purged.error().code == ErrorCode::kBusy);
  CHECK(folder.holds("secret"));
  run("COMMIT");
  CHECK(database->purge());
  CHECK_FALSE(folder.holds("secret"));
  sqlite3_close(reader);
}

TEST_CASE("state file: another program's database is told from ours without opening it") {
  TestFolder folder;
  const StateFiles files(folder.state());
  {
    const auto young = opened(folder);  // whose mark is in its log
    TestFolder killed;
    copy_state(folder.state(), killed.state());
    CHECK_FALSE(StateFiles(killed.state()).is_foreign());
  }
  CHECK_FALSE(files.is_foreign());
  std::filesystem::remove(files.database());
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(files.database().c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "CREATE TABLE x(y)", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(other);
  CHECK(files.is_foreign());
  CHECK(Database::purge_existing(folder.options()).error().code == ErrorCode::kInvalid);
  CHECK(files.is_foreign());
}

TEST_CASE("state file: a purge of one table leaves the others") {
  TestFolder folder;
  const auto database = opened(folder);
  BlobTable a(*database, "a");
  BlobTable b(*database, "b");
  BlobTable below(*database, "a.events");
  BlobTable beside(*database, "ab");
  for (const BlobTable* table : {&a, &b, &below, &beside}) REQUIRE(table->put("", "k", "v"));
  REQUIRE(database->purge("a"));
  CHECK_FALSE(a.get("", "k").value());
  CHECK_FALSE(below.get("", "k").value());
  CHECK(beside.get("", "k").value());
  CHECK(below.put("", "old", "v", folder.now - 1));
  CHECK_FALSE(below.get("", "old").value());
  CHECK(b.get("", "k").value());
  CHECK(b.put("", "old", "v", folder.now - 1));
  CHECK(b.get("", "old").value());
}

}  // namespace
}  // namespace tandem::store
