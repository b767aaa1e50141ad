// A state folder for tests, gone with its object, and a clock moved by hand.
#pragma once

#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

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

/// Has all that was written in the file, and nothing of it in memory.
inline void let_go(Database& database) {
  (void)database.purge("none");
  (void)database.use([](sqlite3* db) -> Status {
    sqlite3_db_release_memory(db);
    return {};
  });
}

}  // namespace tandem::store
