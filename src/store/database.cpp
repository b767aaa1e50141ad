#include "store/database.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <system_error>

#include "base/fd.h"
#include "base/log.h"
#include "base/unix_time.h"
#include "store/statement.h"

namespace tandem::store {
namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kApplication = 0x74646d31;  // "tdm1"
constexpr const char* kParts[] = {"", "-wal", "-shm"};

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

Error file_error(const char* what, const std::filesystem::path& path, int code) {
  return {ErrorCode::kIo, fmt::format("cannot {} {}: {}", what, path.string(),
                                      std::generic_category().message(code))};
}

Status make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  if (std::filesystem::is_directory(folder, failed)) return {};
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), failed);
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return file_error("make the folder", folder, errno);
}

/// SQLite gives its log the mode of the database.
Status make_private_file(const std::filesystem::path& path) {
  const Fd made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made) return {};
  if (errno != EEXIST) return file_error("make", path, errno);
  // Not through a descriptor: closing one would drop SQLite's locks in this process.
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return file_error("read", path, errno);
  if ((found.st_mode & 077) != 0 && ::chmod(path.c_str(), 0600) != 0) {
    return file_error("make private", path, errno);
  }
  return {};
}

Result<int64_t> pragma(sqlite3* db, const char* sql) {
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

Status check_format(sqlite3* db, const std::filesystem::path& file) {
  const auto format = pragma(db, "PRAGMA user_version");
  const auto application = pragma(db, "PRAGMA application_id");
  const auto tables = pragma(db, "SELECT count(*) FROM sqlite_master");
  if (!format) return format.error();
  if (!application) return application.error();
  if (!tables) return tables.error();
  if (*tables == 0) return make_schema(db);
  if (*application != kApplication) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("{} is a database of another program: name another --state-dir",
                             file.string())};
  }
  if (*format > kFormat) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} was written by a newer tandem (format {}, this one knows {}): "
                             "update tandem, or name another --state-dir",
                             file.string(), *format, kFormat)};
  }
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

/// Files that were set aside: what their names begin with.
std::filesystem::path aside_name(const std::filesystem::path& file) {
  return file.filename().string() + ".corrupt";
}

std::vector<std::filesystem::path> files_aside(const std::filesystem::path& file) {
  std::vector<std::filesystem::path> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(aside_name(file).string())) found.push_back(entry.path());
  }
  return found;
}

Status empty_log(sqlite3* db) { return execute(db, "PRAGMA wal_checkpoint(TRUNCATE)", "written"); }

}  // namespace

int64_t unix_microseconds() { return tandem::unix_microseconds(); }

Result<std::unique_ptr<Database>> Database::open(DatabaseOptions options) {
  std::unique_ptr<Database> made(new Database(std::move(options)));
  if (auto folder = make_folder(made->folder()); !folder) return folder.error();
  if (auto connected = made->connect_or_replace(); !connected) return connected.error();
  return made;
}

Result<std::unique_ptr<Database>> Database::open_existing(DatabaseOptions options) {
  std::error_code failed;
  const auto file = options.folder / "state.db";
  if (!std::filesystem::exists(file, failed)) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no {}", file.string())};
  }
  return open(std::move(options));
}

Database::~Database() { close(); }

void Database::close() {
  if (db_ != nullptr) sqlite3_close(db_);
  db_ = nullptr;
}

Database::FileId Database::file_now() const {
  struct stat found{};
  if (::stat(file().c_str(), &found) != 0) return {};
  return {.device = found.st_dev, .inode = found.st_ino};
}

Status Database::connect() {
  if (auto made = make_folder(folder()); !made) return made;
  if (auto made = make_private_file(file()); !made) return made;
  opened_ = file_now();
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;  // mutex_ is ours
  const int code = sqlite3_open_v2(file().c_str(), &db_, flags, nullptr);
  if (code != SQLITE_OK) return sqlite_error(db_, code, "opened");
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, static_cast<int>(options_.busy_timeout.count()));
  // Before there are tables, and before the log.
  if (auto set = execute(db_, "PRAGMA auto_vacuum=INCREMENTAL", "opened"); !set) return set;
  if (auto set = execute(db_, kSettings, "opened"); !set) return set;
  return in_transaction(db_, [&](sqlite3* db) { return check_format(db, file()); });
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
  if (file_now() != opened_) return {};  // another process was first
  for (const std::filesystem::path& old : files_aside(file())) ::unlink(old.c_str());
  const std::time_t seconds = now() / 1'000'000;
  const std::string kept =
      fmt::format("{}-{:%Y%m%dT%H%M%SZ}", aside_name(file()).string(), fmt::gmtime(seconds));
  for (const char* part : kParts) {
    const std::string old = file().string() + part;
    const std::string place = (folder() / kept).string() + part;
    if (::rename(old.c_str(), place.c_str()) != 0 && errno != ENOENT) {
      return file_error("set aside", old, errno);
    }
  }
  ++damaged_;
  TANDEM_LOG(kError, "{} was damaged, and what it kept is lost: it is now {}, and a new one begins",
             file().string(), kept);
  return {};
}

/// Replaces the file when the status says that it is damaged.
Status Database::checked(Status status) {
  if (status || status.error().code != ErrorCode::kCorrupt) return status;
  Status replaced = set_aside();
  if (replaced) replaced = connect_or_replace();
  if (!replaced) TANDEM_LOG(kError, "{}", replaced.error().message);
  return Error{ErrorCode::kCorrupt,
               fmt::format("the state file was damaged ({}): it was set aside, {}; what was kept "
                           "is lost",
                           status.error().message,
                           replaced ? "and a new one begun" : "but no new one could be begun")};
}

Status Database::use(const std::function<Status(sqlite3*)>& work) {
  const std::lock_guard lock(mutex_);
  if (db_ != nullptr && file_now() != opened_) close();  // set aside or removed by others
  if (db_ == nullptr) {
    if (auto connected = connect_or_replace(); !connected) return connected;
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

Status Database::purge(const std::string& table) {
  const Status erased = write([&](sqlite3* db) -> Status {
    Statement rows(db,
                   "DELETE FROM blobs WHERE ?1 = '' OR tbl = ?1"
                   " OR substr(tbl, 1, length(?1) + 1) = ?1 || '.'",
                   "purged");
    if (auto done = rows.bind(table).run(); !done) return done;
    Statement mark(db, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)", "purged");
    return mark.bind("purged" + (table.empty() ? table : "." + table)).bind(now()).run();
  });
  if (!erased) return erased;
  if (table.empty()) {
    for (const std::filesystem::path& old : files_aside(file())) ::unlink(old.c_str());
  }
  return use([&](sqlite3* db) -> Status {
    if (auto shrunk = execute(db, "VACUUM", "shrunk"); !shrunk) return shrunk;
    return empty_log(db);
  });
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

uint64_t Database::file_bytes() const {
  uint64_t sum = 0;
  std::vector<std::filesystem::path> files = files_aside(file());
  for (const char* part : {"", "-wal"}) files.emplace_back(file().string() + part);
  for (const std::filesystem::path& path : files) {
    std::error_code missing;
    const uint64_t size = std::filesystem::file_size(path, missing);
    if (!missing) sum += size;
  }
  return sum;
}

}  // namespace tandem::store
