#include "protocol/openai/conversations.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "protocol/openai/kept_responses.h"
#include "protocol/openai/response_items.h"

namespace tandem::protocol::openai {
namespace {

Error unknown_conversation(const std::string& id) {
  return {ErrorCode::kNotFound,
          fmt::format("no conversation {} is kept here", literal(shortened(id, 80))),
          "conversation_id"};
}

Result<std::string> encode_conversation(const Conversation& conversation) {
  std::string bytes =
      dump(Json{{"conversation", conversation.object}, {"items", conversation.items}});
  if (bytes.size() <= kMaxHistoryBytes) return bytes;
  return Error{ErrorCode::kTooLarge,
               fmt::format("a conversation may have {} bytes, and this one would have {}",
                           kMaxHistoryBytes, bytes.size()),
               "items"};
}

Result<Conversation> decode_conversation(const std::string& bytes) {
  Json json = Json::parse(bytes, nullptr, false);
  const bool is_one = json.is_object() && json.contains("conversation") &&
                      is_item(json["conversation"]) && json.contains("items") &&
                      are_items(json["items"]);
  if (!is_one) return Error{ErrorCode::kCorrupt, "a kept conversation cannot be read: erase it"};
  return Conversation{.object = std::move(json["conversation"]),
                      .items = std::move(json["items"]),
                      .bytes = bytes.size()};
}

}  // namespace

void add_items(const Json& items, Conversation& to) {
  std::set<std::string> known;
  for (const Json& item : to.items) known.insert(string_in(item, "id"));
  for (const Json& item : items) {
    if (known.insert(string_in(item, "id")).second) to.items.push_back(item);
  }
}

Conversations::Conversations(store::Store& store, store::Limits limits)
    : store_(store), table_(store.database(), "conversations", limits) {
  store_.queue().keep_trimmed(table_);
}

Status Conversations::create(const std::string& owner, const Conversation& made) const {
  const auto bytes = encode_conversation(made);
  if (!bytes) return bytes.error();
  return table_.put(owner, made.id(), *bytes);
}

Result<Conversation> Conversations::find(const std::string& owner, const std::string& id) const {
  if (const Status settled = store_.queue().settle_to_read(); !settled) return settled.error();
  const auto bytes = table_.get(owner, id);
  if (!bytes) return bytes.error();
  if (!*bytes) return unknown_conversation(id);
  return decode_conversation(**bytes);
}

Result<Conversation> Conversations::edit(const std::string& owner,
                                         const std::string& id,
                                         const Edit& edit) const {
  Conversation after;
  const auto found = table_.change(owner, id, [&](const std::string& bytes) -> Result<std::string> {
    auto conversation = decode_conversation(bytes);
    if (!conversation) return conversation.error();
    if (const Status done = edit(*conversation); !done) return done.error();
    after = std::move(*conversation);
    return encode_conversation(after);
  });
  if (!found) return found.error();
  if (!*found) return unknown_conversation(id);
  return after;
}

Status Conversations::erase(const std::string& owner, const std::string& id) const {
  const auto erased = table_.erase(owner, id);
  if (!erased) return erased.error();
  return *erased ? Status() : unknown_conversation(id);
}

}  // namespace tandem::protocol::openai
