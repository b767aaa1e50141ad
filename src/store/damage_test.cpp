// A state file that is damaged, or gone.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <barrier>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "store/blob_table.h"
#include "store/folder_test.h"

namespace tandem::store {
namespace {

TEST_CASE("state file: one that is no database is moved aside and a new one begun") {
  TestFolder folder;
  {
    const auto database = opened(folder);
    REQUIRE(BlobTable(*database, "t").put("", "k", "v"));
  }
  overwrite(folder.state() / "state.db", 0, 4096);
  const auto database = opened(folder);
  BlobTable table(*database, "t");
  CHECK_FALSE(table.get("", "k").value());
  CHECK(table.put("", "k", "w"));
  CHECK(aside(folder) == std::vector<std::string>{"state.db.corrupt-19700112T134640Z"});
  CHECK(database->damaged() == 1);
  // A purge takes it too.
  REQUIRE(database->purge());
  CHECK(aside(folder).empty());
}

TEST_CASE("state file: damage found while it is used costs the content, not the process") {
  TestFolder folder;
  {
    const auto database = opened(folder);
    BlobTable table(*database, "t");
    for (int i = 0; i < 50; ++i) {
      REQUIRE(table.put("", std::to_string(i), std::string(3000, 'x')));
    }
  }
  const auto size = std::filesystem::file_size(folder.state() / "state.db");
  // All but the first pages, which say what tables there are.
  const auto database = opened(folder);
  overwrite(folder.state() / "state.db", 65536, size - 65536);
  BlobTable table(*database, "t");
  bool found = false;
  for (int i = 0; i < 50 && !found; ++i) {
    const auto got = table.get("", std::to_string(i));
    found = !got && got.error().code == ErrorCode::kCorrupt;
    if (found) CHECK(got.error().message.find("a new one begun") != std::string::npos);
  }
  CHECK(found);
  CHECK(database->damaged() == 1);
  CHECK(aside(folder).size() == 1);
  CHECK(table.put("", "k", "v"));
  CHECK(table.get("", "k").value() == "v");
}

TEST_CASE("state file: one damaged page is found by a look at the whole file") {
  TestFolder folder;
  {
    const auto database = opened(folder);
    BlobTable table(*database, "t");
    for (int i = 0; i < 200; ++i) REQUIRE(table.put("", fmt::format("key {}", i), "v"));
  }
  const auto size = std::filesystem::file_size(folder.state() / "state.db");
  overwrite(folder.state() / "state.db", size - 4096, 4096);
  const auto database = opened(folder);
  CHECK(database->damaged() == 0);
  const Status found = database->check();
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::kCorrupt);
  CHECK(database->check());
  CHECK(BlobTable(*database, "t").put("", "k", "v"));
}

TEST_CASE("state file: servers that share it go on with the new one, and set aside none twice") {
  TestFolder folder;
  const auto first = opened(folder);
  const auto second = opened(folder);
  const BlobTable ours(*first, "t");
  const BlobTable theirs(*second, "t");
  for (int i = 0; i < 200; ++i) REQUIRE(ours.put("", std::to_string(i), std::string(3000, 'x')));
  let_go(*first);
  overwrite(folder.state() / "state.db", 65536, 300'000);
  REQUIRE_FALSE(first->check());
  REQUIRE(ours.put("", "k", "v"));
  CHECK(theirs.get("", "k").value() == "v");
  CHECK(theirs.put("", "k", "w"));
  CHECK(ours.get("", "k").value() == "w");
  CHECK(second->damaged() == 0);
  CHECK(aside(folder).size() == 1);
  // The same where somebody removed it.
  std::filesystem::remove_all(folder.state());
  CHECK_FALSE(ours.get("", "k").value());
  CHECK(ours.put("", "k", "v"));
  CHECK(theirs.get("", "k").value() == "v");
}

TEST_CASE("state file: a log that cannot be read is damage, in use and at the next start") {
  TestFolder folder;
  const auto database = opened(folder);
  const BlobTable table(*database, "t");
  for (int i = 0; i < 20; ++i) REQUIRE(table.put("", std::to_string(i), "v"));
  TestFolder killed;
  copy_state(folder.state(), killed.state());
  overwrite(killed.state() / "state.db-wal", 40, 20'000);
  const auto later = opened(killed);
  CHECK(later->damaged() == 1);
  CHECK(aside(killed).size() == 1);
  for (const char* part : {"-wal", "-shm"}) {
    overwrite(database->file().string() + part, 40, 20'000);
  }
  const auto got = table.get("", "1");
  REQUIRE_FALSE(got);
  CHECK(got.error().code == ErrorCode::kCorrupt);
  CHECK(got.error().message.find("a new one begun") != std::string::npos);
  CHECK(database->damaged() == 1);
  CHECK(aside(folder).size() == 1);
  REQUIRE(table.put("", "k", "v"));
  CHECK(table.get("", "k").value() == "v");
}

TEST_CASE("state file: a log that was begun, and never written to, is no damage") {
  TestFolder folder;
  std::filesystem::create_directory(folder.state());
  sqlite3* young = nullptr;
  REQUIRE(sqlite3_open((folder.state() / "state.db").c_str(), &young) == SQLITE_OK);
  REQUIRE(sqlite3_exec(young, "PRAGMA journal_mode=WAL; SELECT 1 FROM sqlite_master", nullptr,
                       nullptr, nullptr) == SQLITE_OK);
  TestFolder killed;
  copy_state(folder.state(), killed.state());
  sqlite3_close(young);
  CHECK(opened(killed)->damaged() == 0);
}

TEST_CASE("state file: one that was cut to nothing under a server is set aside by the next") {
  TestFolder folder;
  const auto server = opened(folder);
  const BlobTable table(*server, "t");
  REQUIRE(table.put("", "k", "a secret word"));
  std::filesystem::resize_file(server->file(), 0);
  const auto command = opened(folder);
  CHECK(command->damaged() == 1);
  REQUIRE(command->purge());
  CHECK_FALSE(folder.holds("secret"));
  CHECK_FALSE(table.get("", "k").value());
  REQUIRE(table.put("", "k", "v"));
  CHECK(BlobTable(*command, "t").get("", "k").value() == "v");
}

TEST_CASE("state file: a removed one leaves no log to the next") {
  TestFolder folder;
  const auto server = opened(folder);
  REQUIRE(BlobTable(*server, "t").put("", "k", "a secret word"));
  std::filesystem::remove(server->file());
  const auto next = opened(folder);
  CHECK(next->damaged() == 0);
  CHECK_FALSE(BlobTable(*next, "t").get("", "k").value());
  CHECK_FALSE(folder.holds("secret"));
}

TEST_CASE("state file: of servers that meet damage at once one sets it aside, and all go on") {
  TestFolder folder;
  const auto first = opened(folder);
  const auto second = opened(folder);
  std::barrier<> both(2);
  const auto serve = [&](Database& database, const char* own, const char* other) {
    const BlobTable table(database, "t");
    both.arrive_and_wait();
    (void)database.check();
    both.arrive_and_wait();
    CHECK(table.put("", own, "v"));
    both.arrive_and_wait();
    CHECK(table.get("", other).value() == "v");
  };
  for (uint64_t round = 1; round <= 10; ++round) {
    const BlobTable table(*first, "t");
    for (int i = 0; i < 40; ++i) REQUIRE(table.put("", std::to_string(i), std::string(3000, 'x')));
    let_go(*first);
    let_go(*second);
    overwrite(first->file(), 65536, 30'000);
    std::thread beside([&] { serve(*second, "second", "first"); });
    serve(*first, "first", "second");
    beside.join();
    CHECK(first->damaged() + second->damaged() == round);
    CHECK(aside(folder).size() == 1);
  }
}

TEST_CASE("state file: files get other names only while nobody else is about to") {
  TestFolder folder;
  DatabaseOptions options = folder.options();
  options.busy_timeout = std::chrono::milliseconds(1);
  const auto database = Database::open(options).value();
  const BlobTable table(*database, "t");
  for (int i = 0; i < 200; ++i) REQUIRE(table.put("", std::to_string(i), std::string(3000, 'x')));
  let_go(*database);
  overwrite(database->file(), 65536, 300'000);
  const StateFiles files(folder.state());
  const FileId before = files.database_id();
  {
    const auto other = files.lock(std::chrono::milliseconds(1));
    REQUIRE(other);
    const Status found = database->check();
    REQUIRE_FALSE(found);
    CHECK(found.error().message.find("no new one could be begun") != std::string::npos);
    CHECK(files.lock(std::chrono::milliseconds(1)).error().code == ErrorCode::kBusy);
    CHECK(Database::open(options).error().code == ErrorCode::kBusy);
    CHECK(table.put("", "k", "v").error().code == ErrorCode::kBusy);
    CHECK(files.database_id() == before);
    CHECK(aside(folder).empty());
  }
  // Opened again it is found again.
  while (!table.get("", "0")) continue;
  if (aside(folder).empty()) CHECK_FALSE(database->check());
  CHECK(files.database_id() != before);
  CHECK(aside(folder).size() == 1);
  CHECK(table.put("", "k", "v"));
}

}  // namespace
}  // namespace tandem::store
