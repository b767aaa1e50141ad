#include "store/store.h"

#include <utility>

namespace tandem::store {

Result<std::unique_ptr<Store>> Store::open(DatabaseOptions options, WriteQueueOptions queue) {
  auto database = Database::open(std::move(options));
  if (!database) return database.error();
  auto presence = Presence::announce((*database)->folder());
  if (!presence) return presence.error();
  return std::unique_ptr<Store>(new Store(std::move(*database), std::move(*presence), queue));
}

Store::Store(std::unique_ptr<Database> database, Presence presence, WriteQueueOptions queue)
    : database_(std::move(database)),
      presence_(std::move(presence)),
      queue_(std::make_unique<WriteQueue>(queue)) {}

}  // namespace tandem::store
