// Items of responses as they are kept and listed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json.h"

namespace tandem::protocol::openai {

/// The input of a request, a string or items, as items with type, id, status and parts, arguments
/// as text, and without members that are null. Ids that clients gave stay; others are made of the
/// response's.
Json normal_items(const Json& input, const std::string& response);

/// Whether this is an object with a string as its id, and whether all of a list are.
bool is_item(const Json& item);
bool are_items(const Json& list);

/// Places of items whose id an item before them has, of `there` or of their own list, that says
/// something else. Requires items.
std::vector<size_t> clashing_items(const Json& items, const Json& there);

/// The response that made an item's id, out of the id: ours hold it. Empty for those of clients.
std::string response_of_item(std::string_view item);

/// The items of a response by its id; null when it is not kept.
using ItemsOf = std::function<Result<Json>(const std::string& response)>;

/// Puts items in the place of references to them ({"type": "item_reference", "id"}): those of
/// `history`, else those of the response that made them, each of which is asked for once. The first
/// reference to an unknown item stays, with all behind it. kTooLarge, field "input": the items that
/// stand in for references have more than `max_bytes` as JSON. Errors of `items_of`.
Status resolve_references(Json& input,
                          const Json& history,
                          size_t max_bytes,
                          const ItemsOf& items_of);

/// Whether this stands for an item that is kept.
bool is_reference(const Json& item);

struct Page {
  size_t limit = 20;
  bool ascending = false;
  std::string after = {};  // ids of items; empty: from the end that the order begins with
  std::string before = {};
};

/// `limit` (1 to 100), `order` ("asc", "desc"), `after` and `before`. kInvalid names the field.
Result<Page> read_page(const std::string& query);

/// {"object": "list", "data", "first_id", "last_id", "has_more"}. kInvalid: after or before name no
/// item.
Result<Json> page_of(const Json& items, const Page& page);

}  // namespace tandem::protocol::openai
