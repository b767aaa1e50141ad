#include "store/statement.h"

#include <fmt/format.h>

namespace tandem::store {
namespace {

ErrorCode meaning(int code) {
  switch (code & 0xFF) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::kCorrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::kBusy;
    case SQLITE_TOOBIG:
      return ErrorCode::kTooLarge;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ErrorCode::kIo;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

Error sqlite_error(sqlite3* db, int code, std::string_view doing) {
  const char* what = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const char* advice = (code & 0xFF) == SQLITE_FULL
                           ? " (make room, or erase all that is kept: tandem privacy purge)"
                           : "";
  return {meaning(code), fmt::format("the state could not be {}: {}{}", doing, what, advice)};
}

Status execute(sqlite3* db, const char* sql, std::string_view doing) {
  const int code = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return sqlite_error(db, code, doing);
  return {};
}

Statement::Statement(sqlite3* db, const char* sql, std::string_view doing)
    : db_(db), doing_(doing) {
  keep(sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::keep(int code) {
  if (failed_ == SQLITE_OK && code != SQLITE_OK) failed_ = code;
}

Statement& Statement::bind(std::string_view text) {
  // Nothing at all would be NULL.
  const char* data = text.empty() ? "" : text.data();
  if (failed_ == SQLITE_OK) {
    keep(sqlite3_bind_text64(statement_, next_++, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
  }
  return *this;
}

Statement& Statement::bind(int64_t number) {
  if (failed_ == SQLITE_OK) keep(sqlite3_bind_int64(statement_, next_++, number));
  return *this;
}

Statement& Statement::bind_blob(std::string_view bytes) {
  const char* data = bytes.empty() ? "" : bytes.data();
  if (failed_ == SQLITE_OK) {
    keep(sqlite3_bind_blob64(statement_, next_++, data, bytes.size(), SQLITE_STATIC));
  }
  return *this;
}

Statement& Statement::reset() {
  sqlite3_reset(statement_);
  next_ = 1;
  return *this;
}

Result<bool> Statement::step() {
  if (failed_ != SQLITE_OK) return sqlite_error(db_, failed_, doing_);
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  keep(code);
  return sqlite_error(db_, code, doing_);
}

Status Statement::run() {
  while (true) {
    const auto row = step();
    if (!row) return row.error();
    if (!*row) return {};
  }
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

std::string Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

}  // namespace tandem::store
