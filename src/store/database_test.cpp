#include "store/database.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <fstream>

#include "store/blob_table.h"
#include "store/folder_test.h"

namespace tandem::store {
namespace {

int mode_of(const std::filesystem::path& path) {
  struct stat found{};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  return static_cast<int>(found.st_mode & 0777U);
}

TEST_CASE("state file: only its owner can read it") {
  TestFolder folder;
  const auto database = opened(folder);
  REQUIRE(BlobTable(*database, "t").put("", "k", "v"));
  CHECK(mode_of(folder.state()) == 0700);
  for (const char* part : {"", "-wal", "-shm"}) {
    CHECK(mode_of(database->file().string() + part) == 0600);
  }
}

TEST_CASE("state file: one that others can read is made private") {
  TestFolder folder;
  std::filesystem::create_directory(folder.state());
  std::ofstream(folder.state() / "state.db").close();
  ::chmod((folder.state() / "state.db").c_str(), 0644);
  CHECK(mode_of(opened(folder)->file()) == 0600);
}

TEST_CASE("state file: what was put is there after a restart") {
  TestFolder folder;
  {
    REQUIRE(BlobTable(*opened(folder), "t").put("o", "k", std::string("a\0b", 3)));
  }
  const auto again = opened(folder);
  BlobTable table(*again, "t");
  CHECK(table.get("o", "k").value() == std::string("a\0b", 3));
  CHECK_FALSE(table.get("p", "k").value());
}

TEST_CASE("state file: a newer format is left alone, and named") {
  TestFolder folder;
  REQUIRE(opened(folder)->use([](sqlite3* db) -> Status {
    CHECK(sqlite3_exec(db, "PRAGMA user_version=9", nullptr, nullptr, nullptr) == SQLITE_OK);
    return {};
  }));
  const auto refused = Database::open(folder.options());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message.find("format 9") != std::string::npos);
}

TEST_CASE("state file: another program's database is left alone") {
  TestFolder folder;
  std::filesystem::create_directory(folder.state());
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open((folder.state() / "state.db").c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "CREATE TABLE x(y)", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(other);
  const auto refused = Database::open(folder.options());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalid);
}

TEST_CASE("state file: a folder that cannot be written is an error that names it") {
  TestFolder folder;
  DatabaseOptions options = folder.options();
  options.folder = "/proc/tandem-state";
  const auto refused = Database::open(options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kIo);
  CHECK(refused.error().message.find("/proc/tandem-state") != std::string::npos);
}

TEST_CASE("state file: a disk that is full is an error, and goes on when there is room") {
  TestFolder folder;
  const auto database = opened(folder);
  BlobTable table(*database, "t");
  REQUIRE(table.put("", "small", "v"));
  const Status refused = [&] {
    const SmallDisk disk(200'000);
    return table.put("", "large", std::string(1'000'000, 'x'));
  }();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kIo);
  CHECK(table.get("", "small").value() == "v");
  CHECK(table.put("", "large", std::string(1'000'000, 'x')));
}

TEST_CASE("state file: figures say what is kept") {
  TestFolder folder;
  const auto database = opened(folder);
  CHECK(database->figures()->empty());
  BlobTable table(*database, "t");
  const int64_t first = folder.now;
  REQUIRE(table.put("o", "k", "1234"));
  folder.now += 7;
  REQUIRE(table.put("o", "l", "12"));
  REQUIRE(table.put("o", "l", "123"));
  const auto figures = database->figures().value();
  REQUIRE(figures.size() == 1);
  CHECK(figures[0] ==
        TableFigures{.name = "t", .entries = 2, .bytes = 11, .oldest = first, .newest = first + 7});
  CHECK(database->file_bytes() > 0);
}

TEST_CASE("state file: a folder without one is told apart") {
  TestFolder folder;
  CHECK(Database::open_existing(folder.options()).error().code == ErrorCode::kNotFound);
  CHECK_FALSE(std::filesystem::exists(folder.state()));
}

}  // namespace
}  // namespace tandem::store
