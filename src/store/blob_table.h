// Bytes under names, bounded in number, size and age: the least recently used go first.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tandem::store {

struct Limits {
  uint64_t max_bytes = uint64_t{256} << 20;  // of values, owners and keys
  uint64_t max_entries = 100'000;
  std::chrono::seconds max_age = std::chrono::days(30);  // since it was put

  /// The same with so many eighths of the bytes, for a table among several.
  Limits share(uint64_t eighths) const {
    Limits out = *this;
    out.max_bytes = max_bytes / 8 * eighths;
    return out;
  }
};

struct Blob {
  std::string key;
  std::string value;
  int64_t created = 0;  // microseconds of Unix time
};

/// One table of a database, cheap to copy. An owner, such as the id of an API key, sees nothing of
/// others'; bounds are the table's, whoever owns what. Thread-safe, and across processes. Errors of
/// all: those of Database (kIo, also of a full disk, kBusy, kCorrupt). The database must outlive
/// it.
class BlobTable {
 public:
  BlobTable(Database& database, std::string name, Limits limits = {});

  /// Puts a value in place of an earlier one, and drops what goes over the bounds. `began` (0:
  /// now), microseconds of Unix time, is when the work began that the value comes of: a purge since
  /// then wins, and nothing is put. kTooLarge: the value alone is over the bound.
  Status put(const std::string& owner,
             const std::string& key,
             std::string_view value,
             int64_t began = 0) const;

  /// The same where there is an earlier value only. False: there was none.
  Result<bool> replace(const std::string& owner,
                       const std::string& key,
                       std::string_view value) const;

  /// Puts what `edit` makes of a value in its place, as one step: changes of others come before or
  /// after. It counts as put anew. False: there was none. Errors of `edit` too, which leave the
  /// value as it was.
  using Edit = std::function<Result<std::string>(const std::string& value)>;
  Result<bool> change(const std::string& owner, const std::string& key, const Edit& edit) const;

  /// The value, which counts as used; nothing when there is none or it is too old.
  Result<std::optional<std::string>> get(const std::string& owner, const std::string& key) const;

  /// Whether there is a value. It does not count as used.
  Result<bool> has(const std::string& owner, const std::string& key) const;

  /// The key that follows a value (nothing: there is none under this key); empty at the end.
  using Next = std::function<Result<std::string>(const std::string& key,
                                                 const std::optional<std::string>& value)>;

  /// One value after another, as they are at one moment: all of them count as used. Errors: those
  /// of `next` too, which end it.
  Status follow(const std::string& owner, std::string key, const Next& next) const;

  /// False: there was none. What was erased is gone from the disk.
  Result<bool> erase(const std::string& owner, const std::string& key) const;

  /// At most `count`, the newest first. They do not count as used.
  Result<std::vector<Blob>> newest(const std::string& owner, size_t count) const;

  /// Drops what is too old, or over the bounds.
  Status trim() const;

  const std::string& name() const { return name_; }
  const Limits& limits() const { return limits_; }

 private:
  Status check_size(uint64_t bytes) const;
  Status trim_within(sqlite3* db) const;
  int64_t oldest_allowed() const;

  Database* database_;
  std::string name_;
  Limits limits_;
};

}  // namespace tandem::store
