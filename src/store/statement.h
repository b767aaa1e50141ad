// A prepared statement of SQLite. For this folder only.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tandem::store {

/// What a result code of SQLite means to us: kCorrupt, kBusy, kIo (also a full disk), kTooLarge,
/// kInternal. `doing` completes "the state could not be …".
Error sqlite_error(sqlite3* db, int code, std::string_view doing);

/// Runs statements that give nothing, one after another.
Status execute(sqlite3* db, const char* sql, std::string_view doing);

/// One run of a statement. The first failure is kept and given by step() and run(). Parameters are
/// bound in their order and must outlive the statement.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql, std::string_view doing);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text);
  Statement& bind(int64_t number);
  Statement& bind_blob(std::string_view bytes);

  /// Ready for other parameters.
  Statement& reset();

  /// True: there is a row, whose columns can be read.
  Result<bool> step();
  /// Runs to the end, whatever rows there are.
  Status run();

  int64_t integer(int column) const;
  std::string bytes(int column) const;

 private:
  void keep(int code);

  sqlite3* db_;
  const std::string doing_;
  sqlite3_stmt* statement_ = nullptr;
  int next_ = 1;
  int failed_ = SQLITE_OK;
};

}  // namespace tandem::store
