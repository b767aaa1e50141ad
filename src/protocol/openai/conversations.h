// Conversations of the Responses wire: items under an id, which responses go on with.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "protocol/json.h"
#include "store/store.h"

namespace tandem::protocol::openai {

struct Conversation {
  Json object = {};            // {id, object, created_at, metadata}, as clients see it
  Json items = Json::array();  // each with an id of its own, the oldest first
  size_t bytes = 0;            // of the record, once it was read

  std::string id() const { return object.value("id", ""); }
};

/// Adds items, but for those with ids that are there. Requires items (are_items).
void add_items(const Json& items, Conversation& to);

/// Reads and writes them; `owner` is the id of an API key. Thread-safe. Errors: kNotFound, field
/// "conversation_id"; kTooLarge (over kMaxHistoryBytes, or the limits); kCorrupt (a record that
/// cannot be read); those of store::BlobTable.
class Conversations {
 public:
  Conversations(store::Store& store, store::Limits limits);

  Status create(const std::string& owner, const Conversation& made) const;

  /// Waits for writes that were left. kBusy: they are not written in time.
  Result<Conversation> find(const std::string& owner, const std::string& id) const;

  /// Changes it as one step: changes of others come before or after. What `edit` gives in place of
  /// success leaves it as it was.
  using Edit = std::function<Status(Conversation& conversation)>;
  Result<Conversation> edit(const std::string& owner,
                            const std::string& id,
                            const Edit& edit) const;

  Status erase(const std::string& owner, const std::string& id) const;

 private:
  store::Store& store_;
  const store::BlobTable table_;
};

}  // namespace tandem::protocol::openai
