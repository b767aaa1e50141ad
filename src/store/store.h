// The state of one server: its database, its writes behind, and that it lives.
#pragma once

#include <memory>

#include "store/database.h"
#include "store/presence.h"
#include "store/write_queue.h"

namespace tandem::store {

/// Thread-safe. Tables (BlobTable) over the database are its users' own.
class Store {
 public:
  /// Errors: those of Database::open and Presence::announce.
  static Result<std::unique_ptr<Store>> open(DatabaseOptions options, WriteQueueOptions queue = {});

  Database& database() { return *database_; }
  WriteQueue& queue() { return *queue_; }

  /// Names this run of the server.
  const std::string& server() const { return presence_.id(); }
  /// Whether the run of this name still goes on.
  bool is_alive(const std::string& server) const {
    return Presence::is_alive(database_->folder(), server);
  }

 private:
  Store(std::unique_ptr<Database> database, Presence presence, WriteQueueOptions queue);

  const std::unique_ptr<Database> database_;
  const Presence presence_;
  const std::unique_ptr<WriteQueue> queue_;  // last: it writes to what is above
};

}  // namespace tandem::store
