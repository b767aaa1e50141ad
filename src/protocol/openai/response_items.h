// Items of responses as they are kept and listed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/json.h"

namespace tandem::protocol::openai {

/// The input of a request, a string or items, as items with type, id, status and parts. Ids that
/// clients gave stay; others are made of the response's.
Json normal_items(const Json& input, const std::string& response);

/// The response that made an item's id, out of the id: ours hold it. Empty for those of clients.
std::string response_of_item(std::string_view item);

/// The item of this id; null when there is none.
const Json* find_item(const Json& items, std::string_view id);

/// Puts items in the place of references to them ({"type": "item_reference", "id"}): those of
/// `history`, else what `look_up` finds. References to unknown items stay.
Status resolve_references(Json& input,
                          const Json& history,
                          const std::function<Result<Json>(const std::string& id)>& look_up);

/// Whether this stands for an item that is kept.
bool is_reference(const Json& item);

struct Page {
  size_t limit = 20;
  bool ascending = false;
  std::string after = {};  // ids of items; empty: from the end that the order begins with
  std::string before = {};
};

/// {"object": "list", "data", "first_id", "last_id", "has_more"}. kInvalid: after or before name no
/// item.
Result<Json> page_of(const Json& items, const Page& page);

}  // namespace tandem::protocol::openai
