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
#include "store/state_files.h"

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

/// What a purge took.
struct Purged {
  uint64_t entries = 0;              // none of a file that could not be read
  bool whole = false;                // the files went as they were: they could not be written
  std::vector<std::string> damaged;  // names of damaged files that went too
  std::vector<std::string> left;     // and of those that stay
};

/// One connection, shared by threads: they wait for each other, and for other processes up to the
/// busy timeout. A damaged file (SQLite says so, tables of ours are missing, or it was cut to
/// nothing) costs its content, never the process: it is set aside under a name with the date, a new
/// one is begun, and the call that found it gives kCorrupt, with both. Where another process did
/// so, or removed the file, the next call goes on with the new one.
class Database {
 public:
  /// Makes folder (mode 0700) and file (0600) where there are none. Errors: kIo (cannot be made,
  /// read or written), kUnsupported (written by a newer version), kInvalid (a database of somebody
  /// else), kBusy.
  static Result<std::unique_ptr<Database>> open(DatabaseOptions options);

  /// The same, of a folder that must hold a state file already, if only a damaged one that was set
  /// aside: kNotFound.
  static Result<std::unique_ptr<Database>> open_existing(DatabaseOptions options);

  /// purge() in such a folder, also where the file cannot be opened.
  static Result<Purged> purge_existing(DatabaseOptions options, const std::string& table = {});

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
  /// from the file and its log; with all, damaged files that were set aside too, now or earlier.
  /// Where all cannot be erased from the file (a full disk), the file itself is, and a new one
  /// begun. What other processes were about to write is refused (BlobTable::put). kBusy also where
  /// another process reads what was erased from the log: purge again.
  Result<Purged> purge(const std::string& table = {});

  /// Overwrites what was erased in the log too, as far as nobody reads it.
  void clear_log();

  /// Looks for damage without waiting until it is read: a pass over the file, some 0.4 s a GB from
  /// memory. What is found is dealt with as ever.
  Status check();

  /// Damaged files that this process set aside.
  uint64_t damaged() const { return damaged_; }

  /// Bytes that the state takes on disk: database, log, and a damaged file that was set aside.
  uint64_t file_bytes() const { return files_.bytes(); }
  /// Names of damaged files that were set aside, without their logs.
  std::vector<std::string> files_aside() const;

  int64_t now() const { return options_.now(); }
  const std::filesystem::path& folder() const { return files_.folder(); }
  std::filesystem::path file() const { return files_.database(); }

 private:
  explicit Database(DatabaseOptions options)
      : options_(std::move(options)), files_(options_.folder) {}

  Status reconnect();
  Status connect();
  Status connect_or_replace();
  Status set_aside();
  Status replace();
  void close();
  bool is_damage(const Error& error) const;
  Status checked(Status status);
  Status purge_within(const std::string& table, Purged& out);
  Status purge_whole(Purged& out);
  Status purge_aside(bool all, Purged& out);

  const DatabaseOptions options_;
  const StateFiles files_;
  std::mutex mutex_;
  sqlite3* db_ = nullptr;  // null: could not be opened again
  FileId opened_;          // what db_ is
  std::atomic<uint64_t> damaged_ = 0;
};

}  // namespace tandem::store
