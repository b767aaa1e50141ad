// A state folder for tests, gone with its object, and a clock moved by hand.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "store/database.h"

namespace tandem::store {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem-state-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::filesystem::path state() const { return path_ / "state"; }

  DatabaseOptions options() {
    return {.folder = state(), .now = [this] { return now; }};
  }

  /// Whether the text lies anywhere in the folder's files.
  bool holds(const std::string& text) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (!entry.is_regular_file()) continue;
      std::ostringstream content;
      content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      if (content.str().find(text) != std::string::npos) return true;
    }
    return false;
  }

  int64_t now = 1'000'000'000'000;  // microseconds

 private:
  std::filesystem::path path_;
};

inline std::unique_ptr<Database> opened(TestFolder& folder) {
  auto made = Database::open(folder.options());
  REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
  return std::move(*made);
}

inline void overwrite(const std::filesystem::path& file, size_t from, size_t size) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(from));
  out << std::string(size, '#');
}

/// Names of damaged files that were set aside, without their logs.
inline std::vector<std::string> aside(const TestFolder& folder) {
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

/// What a kill leaves of a state whose log was never emptied.
inline void copy_state(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::create_directory(to);
  for (const char* part : {"state.db", "state.db-wal"}) {
    std::filesystem::copy_file(from / part, to / part);
  }
}

/// While it lives, no file grows over so many bytes.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit small = before_;
    small.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  }
  ~SmallDisk() {
    CHECK(::setrlimit(RLIMIT_FSIZE, &before_) == 0);
    ::signal(SIGXFSZ, handler_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit before_{};
  const sighandler_t handler_;
};

/// Has all that was written in the file, and nothing of it in memory.
inline void let_go(Database& database) {
  (void)database.purge("none");
  (void)database.use([](sqlite3* db) -> Status {
    sqlite3_db_release_memory(db);
    return {};
  });
}

}  // namespace tandem::store
