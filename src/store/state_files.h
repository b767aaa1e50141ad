// The files of a state in their folder: made, told apart, set aside, erased. For this folder only.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace tandem::store {

/// PRAGMA application_id of our databases: "tdm1".
constexpr int64_t kApplication = 0x74646d31;

/// Which file lies at a path; all zero: none.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};

/// The database of a folder with its log, and damaged ones that were set aside. Whoever gives files
/// to these names, or takes them away, holds lock() meanwhile. Any thread.
class StateFiles {
 public:
  explicit StateFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path database() const { return folder_ / "state.db"; }

  /// Makes the folder where there is none (mode 0700), and waits for others that change names in
  /// it. kIo; kBusy: not within the limit.
  Result<Fd> lock(std::chrono::milliseconds limit) const;

  /// Makes an empty database where there is none (mode 0600), without the log of an earlier one,
  /// and has one that others can read private. kIo.
  Status make_database() const;

  FileId database_id() const;

  /// Whether there is anything at all.
  bool exist() const;
  uint64_t database_bytes() const;
  /// Nothing: there is no log.
  std::optional<uint64_t> log_bytes() const;

  /// Whether SQLite's header names another program. Only while this process has the database not
  /// open: its locks would be gone.
  bool is_foreign() const;

  /// Of the database, its log, and those set aside.
  uint64_t bytes() const;

  /// Gives the database with its log another name, in place of those set aside before. Gives that.
  Result<std::string> set_aside(std::time_t now) const;

  /// Paths of what was set aside, logs too.
  std::vector<std::filesystem::path> aside() const;

  /// Overwrites and removes the database and its log, or one file that was set aside; a process
  /// that has it open keeps nothing of it. Takes no room on the disk. kIo.
  Status erase_database() const;
  static Status erase(const std::filesystem::path& path);

 private:
  std::filesystem::path part(const char* ending) const;

  std::filesystem::path folder_;
};

}  // namespace tandem::store
