// An embedded database in a state folder: opened, repaired, purged. FORMAT.md says what is in it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"

struct sqlite3;

namespace tandem::store {

/// Microseconds of Unix time.
int64_t unix_microseconds();

struct DatabaseOptions {
  std::filesystem::path folder;
  std::chrono::milliseconds busy_timeout{5000};      // for another process's write
  std::function<int64_t()> now = unix_microseconds;  // any thread
};

/// What one table holds.
struct TableFigures {
  std::string name;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  int64_t oldest = 0;  // when it was put; microseconds of Unix time
  int64_t newest = 0;

  bool operator==(const TableFigures&) const = default;
};

/// One connection, shared by threads: they wait for each other, and for other processes up to the
/// busy timeout. A damaged file costs its content, never the process: it is set aside under a name
/// with the date, a new one is begun, and the call that found it gives kCorrupt, with both. Where
/// another process did so, or removed the file, the next call goes on with the new one.
class Database {
 public:
  /// Makes folder (mode 0700) and file (0600) where there are none. Errors: kIo (cannot be made,
  /// read or written), kUnsupported (written by a newer version), kInvalid (a database of somebody
  /// else), kBusy.
  static Result<std::unique_ptr<Database>> open(DatabaseOptions options);

  /// The same, of a folder that must hold a state file already: kNotFound.
  static Result<std::unique_ptr<Database>> open_existing(DatabaseOptions options);

  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Calls with the connection, which no other thread uses meanwhile.
  Status use(const std::function<Status(sqlite3*)>& work);

  /// The same as one transaction that writes: all of it, or nothing when it fails.
  Status write(const std::function<Status(sqlite3*)>& work);

  /// Every table that holds something, by name.
  Result<std::vector<TableFigures>> figures();

  /// Erases one table with those below it ("a" takes "a.b" too), or all when the name is empty,
  /// from the file and its log; with all, a damaged file that was moved aside. What other processes
  /// were about to write is refused (BlobTable::put).
  Status purge(const std::string& table = {});

  /// Overwrites what was erased in the log too, as far as nobody reads it.
  void clear_log();

  /// Looks for damage without waiting until it is read: a pass over the file, some 0.4 s a GB from
  /// memory. What is found is dealt with as ever.
  Status check();

  /// Damaged files that this process set aside.
  uint64_t damaged() const { return damaged_; }

  /// Bytes that the state takes on disk: database, log, and a damaged file that was set aside.
  uint64_t file_bytes() const;

  int64_t now() const { return options_.now(); }
  const std::filesystem::path& folder() const { return options_.folder; }
  std::filesystem::path file() const { return options_.folder / "state.db"; }

 private:
  explicit Database(DatabaseOptions options) : options_(std::move(options)) {}

  /// Which file lies at the path of the state.
  struct FileId {
    uint64_t device = 0;
    uint64_t inode = 0;
    bool operator==(const FileId&) const = default;
  };

  FileId file_now() const;
  Status connect();
  Status connect_or_replace();
  Status set_aside();
  void close();
  Status checked(Status status);

  const DatabaseOptions options_;
  std::mutex mutex_;
  sqlite3* db_ = nullptr;  // null: could not be opened again
  FileId opened_;          // what db_ is
  std::atomic<uint64_t> damaged_ = 0;
};

}  // namespace tandem::store
