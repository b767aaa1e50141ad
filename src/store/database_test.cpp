#include "store/database.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "store/blob_table.h"
#include "store/folder_test.h"

namespace tandem::store {
namespace {

std::unique_ptr<Database> opened(TestFolder& folder) {
  auto made = Database::open(folder.options());
  REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
  return std::move(*made);
}

int mode_of(const std::filesystem::path& path) {
  struct stat found{};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  return static_cast<int>(found.st_mode & 0777U);
}

void overwrite(const std::filesystem::path& file, size_t from, size_t size) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(from));
  out << std::string(size, '#');
}

/// Names of damaged files that were set aside, without their logs.
std::vector<std::string> aside(const TestFolder& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.state())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("state.db.corrupt") && !name.ends_with("-shm") &&
        !name.ends_with("-wal")) {
      found.push_back(name);
    }
  }
  return found;
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
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 200'000;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Status refused = table.put("", "large", std::string(1'000'000, 'x'));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  ::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kIo);
  CHECK(table.get("", "small").value() == "v");
  CHECK(table.put("", "large", std::string(1'000'000, 'x')));
}

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
