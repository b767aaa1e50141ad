#include "store/store.h"

#include <utility>

namespace tandem::store {

Result<std::unique_ptr<Store>> Store::open(DatabaseOptions options, WriteQueueOptions queue) {
  auto database = Database::open(std::move(options));
  if (!database) return database.error();
  (void)(*database)->check();  // what it finds it deals with
  auto presence = Presence::announce((*database)->folder());
  if (!presence) return presence.error();
  return std::unique_ptr<Store>(new Store(std::move(*database), std::move(*presence), queue));
}

Store::Store(std::unique_ptr<Database> database, Presence presence, WriteQueueOptions queue)
    : database_(std::move(database)),
      presence_(std::move(presence)),
      queue_(std::make_unique<WriteQueue>(queue, [this] { look(); })) {
  look();
}

std::vector<TableFigures> Store::figures() {
  std::unique_lock lock(figures_mutex_);
  const bool asks = !std::exchange(is_asked_, true);
  std::vector<TableFigures> last = figures_;
  lock.unlock();
  if (asks) queue_->nudge();
  return last;
}

void Store::look() {
  {
    const std::lock_guard lock(figures_mutex_);
    is_asked_ = false;
  }
  auto now = database_->figures();
  if (!now) return;
  const std::lock_guard lock(figures_mutex_);
  figures_ = std::move(*now);
}

}  // namespace tandem::store
