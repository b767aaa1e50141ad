#include "store/blob_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "store/statement.h"

namespace tandem::store {
namespace {

uint64_t size_of(const std::string& owner, const std::string& key, std::string_view value) {
  return owner.size() + key.size() + value.size();
}

/// When this table was last purged.
Result<int64_t> last_purge(sqlite3* db, const std::string& table) {
  const std::string own = "purged." + table;
  const std::string above = "purged." + table.substr(0, table.find('.'));
  Statement asked(db, "SELECT max(value) FROM meta WHERE name IN ('purged', ?1, ?2)", "read");
  const auto row = asked.bind(own).bind(above).step();
  if (!row) return row.error();
  return asked.integer(0);
}

Status insert(sqlite3* db,
              const std::string& table,
              const std::string& owner,
              const Blob& meta,
              std::string_view value) {
  Statement row(db,
                "INSERT INTO blobs(tbl, owner, key, bytes, created, used, value)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?5, ?6)"
                " ON CONFLICT(tbl, owner, key) DO UPDATE SET bytes = excluded.bytes,"
                " created = excluded.created, used = excluded.used, value = excluded.value",
                "written");
  row.bind(table).bind(owner).bind(meta.key);
  row.bind(static_cast<int64_t>(size_of(owner, meta.key, value))).bind(meta.created);
  return row.bind_blob(value).run();
}

struct Total {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

Result<Total> total_of(sqlite3* db, const std::string& table) {
  Statement asked(db, "SELECT entries, bytes FROM totals WHERE tbl = ?1", "read");
  const auto row = asked.bind(table).step();
  if (!row) return row.error();
  if (!*row) return Total{};
  return Total{.entries = static_cast<uint64_t>(asked.integer(0)),
               .bytes = static_cast<uint64_t>(asked.integer(1))};
}

struct Link {
  int64_t id = 0;
  std::string value;
};

/// Reads one value after another by the same statement.
class ValueReader {
 public:
  ValueReader(sqlite3* db, const std::string& table, const std::string& owner, int64_t oldest)
      : table_(table),
        owner_(owner),
        oldest_(oldest),
        asked_(db,
               "SELECT id, value FROM blobs"
               " WHERE tbl = ?1 AND owner = ?2 AND key = ?3 AND created >= ?4",
               "read") {}

  Result<std::optional<Link>> read(const std::string& key) {
    const auto row = asked_.reset().bind(table_).bind(owner_).bind(key).bind(oldest_).step();
    if (!row) return row.error();
    if (!*row) return std::optional<Link>();
    return std::optional<Link>({.id = asked_.integer(0), .value = asked_.bytes(1)});
  }

 private:
  const std::string& table_;
  const std::string& owner_;
  const int64_t oldest_;
  Statement asked_;
};

/// All of its life the tables stay as they are; it writes nothing.
class ReadTransaction {
 public:
  explicit ReadTransaction(sqlite3* db) : db_(db), begun_(execute(db, "BEGIN", "read")) {}
  ~ReadTransaction() {
    if (begun_) (void)execute(db_, "ROLLBACK", "read");
  }
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;

  const Status& begun() const { return begun_; }

 private:
  sqlite3* const db_;
  const Status begun_;
};

/// Only the order of leaving suffers where nothing can be written.
void mark_used(sqlite3* db, const std::vector<int64_t>& ids, int64_t now) {
  if (ids.size() > 1 && !execute(db, "BEGIN IMMEDIATE", "written")) return;
  Statement touch(db, "UPDATE blobs SET used = ?2 WHERE id = ?1", "written");
  for (const int64_t id : ids) {
    if (!touch.reset().bind(id).bind(now).run()) break;
  }
  touch.reset();
  if (ids.size() > 1 && !execute(db, "COMMIT", "written")) {
    (void)execute(db, "ROLLBACK", "rolled back");
  }
}

/// The least recently used, as many as are over the bounds.
Result<std::vector<int64_t>> surplus(sqlite3* db,
                                     const std::string& table,
                                     const Limits& limits,
                                     Total total) {
  std::vector<int64_t> ids;
  Statement rows(db, "SELECT id, bytes FROM blobs WHERE tbl = ?1 ORDER BY used, id", "read");
  rows.bind(table);
  while (total.entries > limits.max_entries || total.bytes > limits.max_bytes) {
    const auto row = rows.step();
    if (!row) return row.error();
    if (!*row) break;
    ids.push_back(rows.integer(0));
    --total.entries;
    total.bytes -= static_cast<uint64_t>(rows.integer(1));
  }
  return ids;
}

}  // namespace

BlobTable::BlobTable(Database& database, std::string name, Limits limits)
    : database_(&database), name_(std::move(name)), limits_(limits) {}

int64_t BlobTable::oldest_allowed() const {
  const auto age = std::chrono::duration_cast<std::chrono::microseconds>(limits_.max_age).count();
  return database_->now() - age;
}

Status BlobTable::check_size(uint64_t bytes) const {
  if (bytes <= limits_.max_bytes) return {};
  return Error{ErrorCode::kTooLarge,
               fmt::format("what is to be kept has {} bytes, and all of {} may have {}", bytes,
                           name_, limits_.max_bytes)};
}

Status BlobTable::put(const std::string& owner,
                      const std::string& key,
                      std::string_view value,
                      int64_t began) const {
  if (auto fits = check_size(size_of(owner, key, value)); !fits) return fits;
  return database_->write([&](sqlite3* db) -> Status {
    const int64_t now = database_->now();
    const auto purged = last_purge(db, name_);
    if (!purged) return purged.error();
    if (began != 0 && began <= *purged) return {};
    const Blob meta{.key = key, .value = {}, .created = now};
    if (auto put = insert(db, name_, owner, meta, value); !put) return put;
    return trim_within(db);
  });
}

Result<bool> BlobTable::replace(const std::string& owner,
                                const std::string& key,
                                std::string_view value) const {
  if (auto fits = check_size(size_of(owner, key, value)); !fits) return fits.error();
  bool found = false;
  const Status done = database_->write([&](sqlite3* db) -> Status {
    Statement row(db,
                  "UPDATE blobs SET value = ?4, bytes = ?5, used = ?6"
                  " WHERE tbl = ?1 AND owner = ?2 AND key = ?3",
                  "written");
    row.bind(name_).bind(owner).bind(key).bind_blob(value);
    row.bind(static_cast<int64_t>(size_of(owner, key, value))).bind(database_->now());
    if (auto run = row.run(); !run) return run;
    found = sqlite3_changes(db) > 0;
    return trim_within(db);
  });
  if (!done) return done.error();
  return found;
}

Result<bool> BlobTable::change(const std::string& owner,
                               const std::string& key,
                               const Edit& edit) const {
  bool found = false;
  std::optional<Error> refused;  // apart: it says nothing of the file
  const Status done = database_->write([&](sqlite3* db) -> Status {
    auto before = ValueReader(db, name_, owner, oldest_allowed()).read(key);
    if (!before) return before.error();
    found = before->has_value();
    if (!found) return {};
    auto after = edit((*before)->value);
    if (after) {
      if (auto fits = check_size(size_of(owner, key, *after)); !fits) after = fits.error();
    }
    if (!after) {
      refused = after.error();
      return {};
    }
    const Blob meta{.key = key, .value = {}, .created = database_->now()};
    if (auto put = insert(db, name_, owner, meta, *after); !put) return put;
    return trim_within(db);
  });
  if (refused) return *refused;
  if (!done) return done.error();
  return found;
}

Result<std::optional<std::string>> BlobTable::get(const std::string& owner,
                                                  const std::string& key) const {
  std::optional<std::string> value;
  const Status done = database_->use([&](sqlite3* db) -> Status {
    auto found = ValueReader(db, name_, owner, oldest_allowed()).read(key);
    if (!found) return found.error();
    if (!*found) return {};
    value = std::move((*found)->value);
    mark_used(db, {(*found)->id}, database_->now());
    return {};
  });
  if (!done) return done.error();
  return value;
}

Result<bool> BlobTable::has(const std::string& owner, const std::string& key) const {
  bool found = false;
  const Status done = database_->use([&](sqlite3* db) -> Status {
    Statement asked(db,
                    "SELECT 1 FROM blobs"
                    " WHERE tbl = ?1 AND owner = ?2 AND key = ?3 AND created >= ?4",
                    "read");
    const auto row = asked.bind(name_).bind(owner).bind(key).bind(oldest_allowed()).step();
    if (!row) return row.error();
    found = *row;
    return {};
  });
  if (!done) return done.error();
  return found;
}

Status BlobTable::follow(const std::string& owner, std::string key, const Next& next) const {
  std::optional<Error> refused;  // apart: it says nothing of the file
  const Status done = database_->use([&](sqlite3* db) -> Status {
    std::vector<int64_t> ids;
    Status read;
    {
      const ReadTransaction transaction(db);
      if (!transaction.begun()) return transaction.begun();
      ValueReader values(db, name_, owner, oldest_allowed());
      while (read && !refused && !key.empty()) {
        auto found = values.read(key);
        if (!found) {
          read = found.error();
          break;
        }
        if (*found) ids.push_back((*found)->id);
        auto following =
            next(key, *found ? std::optional(std::move((*found)->value)) : std::nullopt);
        if (!following) refused = following.error();
        key = following ? std::move(*following) : std::string();
      }
    }
    if (read) mark_used(db, ids, database_->now());
    return read;
  });
  if (!done) return done;
  return refused ? Status(*refused) : Status();
}

Result<bool> BlobTable::erase(const std::string& owner, const std::string& key) const {
  bool found = false;
  const auto remove = [&](sqlite3* db) -> Status {
    Statement row(db, "DELETE FROM blobs WHERE tbl = ?1 AND owner = ?2 AND key = ?3", "erased");
    if (auto run = row.bind(name_).bind(owner).bind(key).run(); !run) return run;
    found = sqlite3_changes(db) > 0;
    return {};
  };
  Status done = database_->write(remove);
  if (!done && done.error().code == ErrorCode::kIo) {
    // On a full disk there may be room in the log once it is emptied.
    database_->clear_log();
    done = database_->write(remove);
  }
  if (!done) return done.error();
  if (found) database_->clear_log();
  return found;
}

Result<std::vector<Blob>> BlobTable::newest(const std::string& owner, size_t count) const {
  std::vector<Blob> found;
  const Status done = database_->use([&](sqlite3* db) -> Status {
    Statement rows(db,
                   "SELECT key, value, created FROM blobs"
                   " WHERE tbl = ?1 AND owner = ?2 AND created >= ?3"
                   " ORDER BY created DESC, id DESC LIMIT ?4",
                   "read");
    const size_t most = std::numeric_limits<int32_t>::max();
    rows.bind(name_).bind(owner).bind(oldest_allowed());
    rows.bind(static_cast<int64_t>(std::min(count, most)));
    while (true) {
      const auto row = rows.step();
      if (!row) return row.error();
      if (!*row) return {};
      found.push_back({rows.bytes(0), rows.bytes(1), rows.integer(2)});
    }
  });
  if (!done) return done.error();
  return found;
}

Status BlobTable::trim() const {
  return database_->write([&](sqlite3* db) { return trim_within(db); });
}

Status BlobTable::trim_within(sqlite3* db) const {
  const int64_t oldest = oldest_allowed();
  Statement old(db, "DELETE FROM blobs WHERE tbl = ?1 AND created < ?2", "trimmed");
  if (auto done = old.bind(name_).bind(oldest).run(); !done) return done;
  const int expired = sqlite3_changes(db);
  const auto total = total_of(db, name_);
  if (!total) return total.error();
  const auto ids = surplus(db, name_, limits_, *total);
  if (!ids) return ids.error();
  for (const int64_t id : *ids) {
    Statement row(db, "DELETE FROM blobs WHERE id = ?1", "trimmed");
    if (auto done = row.bind(id).run(); !done) return done;
  }
  if (expired == 0 && ids->empty()) return {};
  return execute(db, "PRAGMA incremental_vacuum(64)", "trimmed");
}

}  // namespace tandem::store
