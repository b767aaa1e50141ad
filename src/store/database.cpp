#include "store/database.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "base/unix_time.h"
#include "store/statement.h"

namespace tandem::store {
namespace {

constexpr int64_t kFormat = 1;

constexpr const char* kSettings = R"(
  PRAGMA journal_mode=WAL;
  PRAGMA synchronous=NORMAL;
  PRAGMA secure_delete=ON;
  PRAGMA trusted_schema=OFF;
  PRAGMA journal_size_limit=4194304;
)";

constexpr const char* kSchema = R"(
  CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE blobs(
    id INTEGER PRIMARY KEY,
    tbl TEXT NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL,
    bytes INTEGER NOT NULL, created INTEGER NOT NULL, used INTEGER NOT NULL,
    value BLOB NOT NULL,
    UNIQUE(tbl, owner, key));
  CREATE INDEX blobs_used ON blobs(tbl, used);
  CREATE INDEX blobs_created ON blobs(tbl, created);
  CREATE TABLE totals(
    tbl TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TRIGGER blobs_added AFTER INSERT ON blobs BEGIN
    INSERT INTO totals VALUES(new.tbl, 1, new.bytes)
      ON CONFLICT(tbl) DO UPDATE SET entries = entries + 1, bytes = bytes + new.bytes;
  END;
  CREATE TRIGGER blobs_removed AFTER DELETE ON blobs BEGIN
    UPDATE totals SET entries = entries - 1, bytes = bytes - old.bytes WHERE tbl = old.tbl;
  END;
  CREATE TRIGGER blobs_changed AFTER UPDATE OF bytes ON blobs BEGIN
    UPDATE totals SET bytes = bytes - old.bytes + new.bytes WHERE tbl = old.tbl;
  END;
)";

/// The one number that a statement gives.
Result<int64_t> number(sqlite3* db, const char* sql) {
  Statement asked(db, sql, "opened");
  const auto row = asked.step();
  if (!row) return row.error();
  return *row ? asked.integer(0) : 0;
}

Status make_schema(sqlite3* db) {
  if (auto made = execute(db, kSchema, "set up"); !made) return made;
  const std::string marks =
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplication, kFormat);
  return execute(db, marks.c_str(), "set up");
}

Result<bool> has_all_tables(sqlite3* db) {
  const auto found = number(db,
                            "SELECT count(*) FROM sqlite_master"
                            " WHERE type = 'table' AND name IN ('meta', 'blobs', 'totals')");
  if (!found) return found.error();
  return *found == 3;
}

Error foreign_error(const std::filesystem::path& file) {
  return {
      ErrorCode::kInvalid,
      fmt::format("{} is a database of another program: name another --state-dir", file.string())};
}

/// `was_written`: whether there was something in its log.
Status check_format(sqlite3* db, const std::filesystem::path& file, bool was_written) {
  const auto format = number(db, "PRAGMA user_version");
  const auto application = number(db, "PRAGMA application_id");
  const auto tables = number(db, "SELECT count(*) FROM sqlite_master");
  if (!format) return format.error();
  if (!application) return application.error();
  if (!tables) return tables.error();
  if (*tables == 0 && was_written) {
    return Error{ErrorCode::kCorrupt, "nothing of its log can be read"};
  }
  if (*tables == 0) return make_schema(db);
  if (*application != kApplication) return foreign_error(file);
  if (*format > kFormat) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} was written by a newer tandem (format {}, this one knows {}): "
                             "update tandem, or name another --state-dir",
                             file.string(), *format, kFormat)};
  }
  const auto whole = has_all_tables(db);
  if (!whole) return whole.error();
  if (!*whole) return Error{ErrorCode::kCorrupt, "a table is missing"};
  return {};
}

/// As one transaction. Reads see what was committed before, or all of it.
Status in_transaction(sqlite3* db, const std::function<Status(sqlite3*)>& work) {
  if (auto begun = execute(db, "BEGIN IMMEDIATE", "written"); !begun) return begun;
  Status done;
  try {
    done = work(db);
  } catch (...) {
    (void)execute(db, "ROLLBACK", "rolled back");
    throw;
  }
  if (done) done = execute(db, "COMMIT", "written");
  // SQLite may have rolled back already.
  if (!done && sqlite3_get_autocommit(db) == 0) {
    (void)execute(db, "ROLLBACK", "rolled back");
  }
  return done;
}

Status empty_log(sqlite3* db) {
  Statement asked(db, "PRAGMA wal_checkpoint(TRUNCATE)", "written");
  const auto row = asked.step();
  if (!row) return row.error();
  if (!*row || asked.integer(0) == 0) return {};
  return Error{ErrorCode::kBusy,
               "what was erased may still be in the log of the state, which another process reads: "
               "try again"};
}

}  // namespace

int64_t unix_microseconds() { return tandem::unix_microseconds(); }

Result<std::unique_ptr<Database>> Database::open(DatabaseOptions options) {
  std::unique_ptr<Database> made(new Database(std::move(options)));
  if (auto connected = made->reconnect(); !connected) return connected.error();
  return made;
}

Result<std::unique_ptr<Database>> Database::open_existing(DatabaseOptions options) {
  const StateFiles files(options.folder);
  if (files.exist()) return open(std::move(options));
  return Error{ErrorCode::kNotFound, fmt::format("there is no {}", files.database().string())};
}

Result<Purged> Database::purge_existing(DatabaseOptions options, const std::string& table) {
  Database database(std::move(options));
  if (database.files_.exist()) return database.purge(table);
  return Error{ErrorCode::kNotFound, fmt::format("there is no {}", database.file().string())};
}

Database::~Database() { close(); }

void Database::close() {
  if (db_ != nullptr) sqlite3_close(db_);
  db_ = nullptr;
}

Status Database::connect() {
  if (auto made = files_.make_database(); !made) return made;
  opened_ = files_.database_id();
  // SQLite would take it for a new one, and the log from whoever has it open.
  const auto log = files_.log_bytes();
  if (log && files_.database_bytes() == 0) {
    return Error{ErrorCode::kCorrupt, "the file is empty beside its log"};
  }
  const bool was_written = log.value_or(0) > 0;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;  // mutex_ is ours
  const int code = sqlite3_open_v2(file().c_str(), &db_, flags, nullptr);
  if (code != SQLITE_OK) return sqlite_error(db_, code, "opened");
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, static_cast<int>(options_.busy_timeout.count()));
  // Before there are tables, and before the log.
  if (auto set = execute(db_, "PRAGMA auto_vacuum=INCREMENTAL", "opened"); !set) return set;
  if (auto set = execute(db_, kSettings, "opened"); !set) return set;
  return in_transaction(db_, [&](sqlite3* db) { return check_format(db, file(), was_written); });
}

/// Alone with the folder, as what follows. Names change in no other way, so that who compares them
/// and then changes them is right.
Status Database::reconnect() {
  const auto alone = files_.lock(options_.busy_timeout);
  if (!alone) return alone.error();
  close();
  return connect_or_replace();
}

Status Database::connect_or_replace() {
  Status connected = connect();
  if (!connected && connected.error().code == ErrorCode::kCorrupt) {
    if (auto moved = set_aside(); !moved) return moved;
    connected = connect();
  }
  if (!connected) close();
  return connected;
}

/// Leaves the place free for a new file. Of files set aside the last one stays.
Status Database::set_aside() {
  close();
  if (files_.database_id() != opened_) return {};  // another process was first
  const auto kept = files_.set_aside(now() / 1'000'000);
  if (!kept) return kept.error();
  ++damaged_;
  TANDEM_LOG(kError, "{} was damaged, and what it kept is lost: it is now {}, and a new one begins",
             file().string(), *kept);
  return {};
}

Status Database::replace() {
  const auto alone = files_.lock(options_.busy_timeout);
  if (!alone) {
    close();  // the next call tries again
    return alone.error();
  }
  if (auto moved = set_aside(); !moved) return moved;
  return connect_or_replace();
}

/// Tables go with the pages that told of them: a log that cannot be read looks like none.
bool Database::is_damage(const Error& error) const {
  if (error.code != ErrorCode::kInternal) return error.code == ErrorCode::kCorrupt;
  const auto whole = has_all_tables(db_);
  return whole ? !*whole : whole.error().code == ErrorCode::kCorrupt;
}

/// Replaces the file when the status says that it is damaged.
Status Database::checked(Status status) {
  if (status || !is_damage(status.error())) return status;
  const Status replaced = replace();
  if (!replaced) TANDEM_LOG(kError, "{}", replaced.error().message);
  return Error{ErrorCode::kCorrupt,
               fmt::format("the state file was damaged ({}): it was set aside, {}; what was kept "
                           "is lost",
                           status.error().message,
                           replaced ? "and a new one begun" : "but no new one could be begun")};
}

Status Database::use(const std::function<Status(sqlite3*)>& work) {
  const std::lock_guard lock(mutex_);
  // Set aside or removed by others.
  if (db_ == nullptr || files_.database_id() != opened_) {
    if (auto connected = reconnect(); !connected) return connected;
  }
  return checked(work(db_));
}

Status Database::write(const std::function<Status(sqlite3*)>& work) {
  return use([&](sqlite3* db) { return in_transaction(db, work); });
}

Result<std::vector<TableFigures>> Database::figures() {
  std::vector<TableFigures> found;
  const Status read = use([&](sqlite3* db) -> Status {
    Statement rows(db,
                   "SELECT tbl, entries, bytes,"
                   " (SELECT min(created) FROM blobs WHERE tbl = totals.tbl),"
                   " (SELECT max(created) FROM blobs WHERE tbl = totals.tbl)"
                   " FROM totals WHERE entries > 0 ORDER BY tbl",
                   "read");
    while (true) {
      const auto row = rows.step();
      if (!row) return row.error();
      if (!*row) return {};
      found.push_back({.name = rows.bytes(0),
                       .entries = static_cast<uint64_t>(rows.integer(1)),
                       .bytes = static_cast<uint64_t>(rows.integer(2)),
                       .oldest = rows.integer(3),
                       .newest = rows.integer(4)});
    }
  });
  if (!read) return read.error();
  return found;
}

Result<Purged> Database::purge(const std::string& table) {
  const bool all = table.empty();
  Purged out;
  Status done = purge_within(table, out);
  // The new one has to know of the purge too.
  if (all && !done && done.error().code == ErrorCode::kCorrupt) done = purge_within(table, out);
  if (all && !done && done.error().code == ErrorCode::kIo) done = purge_whole(out);
  if (const Status aside = purge_aside(all, out); done && !aside) done = aside;
  if (!done) return done.error();
  return out;
}

Status Database::purge_within(const std::string& table, Purged& out) {
  int entries = 0;
  const Status erased = write([&](sqlite3* db) -> Status {
    Statement rows(db,
                   "DELETE FROM blobs WHERE ?1 = '' OR tbl = ?1"
                   " OR substr(tbl, 1, length(?1) + 1) = ?1 || '.'",
                   "purged");
    if (auto done = rows.bind(table).run(); !done) return done;
    entries = sqlite3_changes(db);
    Statement mark(db, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)", "purged");
    return mark.bind("purged" + (table.empty() ? table : "." + table)).bind(now()).run();
  });
  if (!erased) return erased;
  out.entries += static_cast<uint64_t>(entries);
  return use([&](sqlite3* db) -> Status {
    if (auto shrunk = execute(db, "VACUUM", "shrunk"); !shrunk) return shrunk;
    return empty_log(db);
  });
}

/// Who has the files open finds them gone with the next call.
Status Database::purge_whole(Purged& out) {
  {
    const std::lock_guard lock(mutex_);
    const auto alone = files_.lock(options_.busy_timeout);
    if (!alone) return alone.error();
    close();
    if (files_.is_foreign()) return foreign_error(file());
    if (auto erased = files_.erase_database(); !erased) return erased;
    out.whole = true;
  }
  const Status marked = purge_within({}, out);
  if (marked) return marked;
  return Error{marked.error().code,
               fmt::format("{} was erased, but no new one could be begun ({}): what a server is "
                           "making now may still be kept, so purge again",
                           file().string(), marked.error().message)};
}

Status Database::purge_aside(bool all, Purged& out) {
  (all ? out.damaged : out.left) = files_aside();
  if (!all) return {};
  const auto alone = files_.lock(options_.busy_timeout);
  if (!alone) return alone.error();
  for (const std::filesystem::path& path : files_.aside()) {
    if (auto erased = StateFiles::erase(path); !erased) return erased;
  }
  return {};
}

std::vector<std::string> Database::files_aside() const {
  std::vector<std::string> names;
  for (const std::filesystem::path& path : files_.aside()) {
    const std::string name = path.filename().string();
    if (!name.ends_with("-wal") && !name.ends_with("-shm")) names.push_back(name);
  }
  return names;
}

Status Database::check() {
  return use([&](sqlite3* db) -> Status {
    Statement asked(db, "PRAGMA quick_check(1)", "checked");
    const auto row = asked.step();
    if (!row) return row.error();
    const std::string word = *row ? asked.bytes(0) : "ok";
    if (word == "ok") return {};
    return Error{ErrorCode::kCorrupt, word};
  });
}

void Database::clear_log() {
  const Status cleared = use(empty_log);
  if (!cleared) TANDEM_LOG(kWarn, "{}", cleared.error().message);
}

}  // namespace tandem::store
