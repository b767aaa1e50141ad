// The state of one server: its database, its writes behind, and that it lives.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "store/database.h"
#include "store/presence.h"
#include "store/write_queue.h"

namespace tandem::store {

/// Thread-safe. Tables (BlobTable) over the database are its users' own.
class Store {
 public:
  /// A damaged file is set aside at once. Errors: those of Database::open and Presence::announce.
  static Result<std::unique_ptr<Store>> open(DatabaseOptions options, WriteQueueOptions queue = {});

  Database& database() { return *database_; }
  WriteQueue& queue() { return *queue_; }

  /// What the tables held when they were last looked at, which this asks for anew: it never waits
  /// for the disk. They are looked at after this server's writes, too.
  std::vector<TableFigures> figures();

  /// Names this run of the server.
  const std::string& server() const { return presence_.id(); }
  /// Whether the run of this name still goes on.
  bool is_alive(const std::string& server) const {
    return Presence::is_alive(database_->folder(), server);
  }

 private:
  Store(std::unique_ptr<Database> database, Presence presence, WriteQueueOptions queue);

  void look();

  const std::unique_ptr<Database> database_;
  const Presence presence_;
  std::mutex figures_mutex_;
  std::vector<TableFigures> figures_;
  bool is_asked_ = false;                    // a look waits in the queue
  const std::unique_ptr<WriteQueue> queue_;  // last: it writes to what is above
};

}  // namespace tandem::store
