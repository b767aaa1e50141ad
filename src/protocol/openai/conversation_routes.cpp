// /v1/conversations and their items.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "protocol/call.h"
#include "protocol/errors.h"
#include "protocol/openai/response_items.h"
#include "protocol/openai/responses_input.h"
#include "protocol/openai/responses_state.h"
#include "protocol/openai/shared_fields.h"
#include "protocol/query.h"

namespace tandem::protocol::openai {
namespace {

constexpr size_t kMaxAdded = 20;  // items at a time, as there

std::string parameter(const net::Request& request, const char* name) {
  const auto found = request.parameters.find(name);
  return found == request.parameters.end() ? std::string() : found->second;
}

/// What of a body is a conversation's. Null metadata is none.
struct Given {
  std::optional<Json> metadata;
  std::optional<Json> items;
};

/// Items of the field, with ids of their own.
std::optional<Json> read_given_items(Fields& fields) {
  const Json* items = fields.array("items");
  if (!items) return std::nullopt;
  if (items->size() > kMaxAdded) {
    fields.refuse("items", fmt::format("must have at most {} items at a time, not {}", kMaxAdded,
                                       items->size()));
  } else {
    check_items(fields, *items, "items");
  }
  if (fields.error()) return std::nullopt;
  return normal_items(*items, new_request_id("conv_"));
}

/// `elsewhere`: a field that another path takes, and which.
Result<Given> read_given(Api& api,
                         const net::Request& request,
                         std::pair<const char*, const char*> elsewhere = {}) {
  const auto body = parse_body(request.body.empty() ? "{}" : request.body);
  if (!body) return body.error();
  Fields fields(*body);
  if (const auto& [name, way] = elsewhere; name != nullptr && fields.has(name)) {
    fields.refuse(name, fmt::format("has no place here: {}", way));
  }
  Given given;
  check_metadata(fields);
  const Json* metadata = fields.object("metadata");
  if (body->contains("metadata")) given.metadata = metadata ? *metadata : Json::object();
  given.items = read_given_items(fields);
  WireRequest rest;
  const chat::ModelInfo model = api.service().model();
  const Status done = finish_fields(fields, {.model = model, .options = api.options()}, rest);
  if (!done) return done.error();
  api.metrics().ignored(rest.ignored);
  return given;
}

Error missing(const char* name) {
  return {ErrorCode::kInvalid, fmt::format("'{}' is missing", name), name};
}

Json list_of(const Json& items) {
  return page_of(items, {.limit = items.size(), .ascending = true}).value();
}

const Json* item_named(const Conversation& conversation, const std::string& id) {
  const auto found = std::ranges::find_if(
      conversation.items, [&](const Json& item) { return string_in(item, "id") == id; });
  return found == conversation.items.end() ? nullptr : &*found;
}

/// Adds items all together. kInvalid, field "items[…].id": one has the id of another item.
Status add_given(const Json& items, Conversation& to) {
  const auto clashes = clashing_items(items, to.items);
  if (clashes.empty()) {
    add_items(items, to);
    return {};
  }
  const std::string field = fmt::format("items[{}].id", clashes.front());
  return Error{ErrorCode::kInvalid,
               fmt::format("'{}' is that of another item of the conversation, {}: leave it out, or "
                           "give another",
                           field, literal(shortened(string_in(items[clashes.front()], "id"), 80))),
               field};
}

/// The items of a conversation that have the ids of these.
Json kept_items(const Json& items, const Conversation& conversation) {
  Json kept = Json::array();
  std::set<std::string> ids;
  for (const Json& item : items) {
    const std::string id = string_in(item, "id");
    if (ids.insert(id).second) kept.push_back(*item_named(conversation, id));
  }
  return kept;
}

Error unknown_conversation_item(const std::string& id) {
  return {ErrorCode::kNotFound,
          fmt::format("the conversation has no item {}", literal(shortened(id, 80))), "item_id"};
}

Result<Json> create(Api& api, const Conversations& all, const net::Request& request) {
  const auto given = read_given(api, request);
  if (!given) return given.error();
  Conversation made;
  made.object["id"] = new_request_id("conv_");
  made.object["object"] = "conversation";
  made.object["created_at"] = unix_seconds();
  made.object["metadata"] = given->metadata.value_or(Json::object());
  if (given->items) {
    if (const Status added = add_given(*given->items, made); !added) return added.error();
  }
  if (const Status done = all.create(request.key_id, made); !done) return done.error();
  return made.object;
}

Result<Json> retrieve(Api&, const Conversations& all, const net::Request& request) {
  const auto found = all.find(request.key_id, parameter(request, "id"));
  if (!found) return found.error();
  return found->object;
}

Result<Json> update(Api& api, const Conversations& all, const net::Request& request) {
  const auto given =
      read_given(api, request, {"items", "POST /v1/conversations/{id}/items adds items"});
  if (!given) return given.error();
  if (!given->metadata) return missing("metadata");
  const auto changed =
      all.edit(request.key_id, parameter(request, "id"), [&](Conversation& conversation) {
        conversation.object["metadata"] = *given->metadata;
        return Status();
      });
  if (!changed) return changed.error();
  return changed->object;
}

Result<Json> erase_conversation(Api&, const Conversations& all, const net::Request& request) {
  const std::string id = parameter(request, "id");
  if (const Status done = all.erase(request.key_id, id); !done) return done.error();
  return Json{{"id", id}, {"object", "conversation.deleted"}, {"deleted", true}};
}

Result<Json> add(Api& api, const Conversations& all, const net::Request& request) {
  const auto given =
      read_given(api, request, {"metadata", "POST /v1/conversations/{id} changes it"});
  if (!given) return given.error();
  if (!given->items) return missing("items");
  const auto changed =
      all.edit(request.key_id, parameter(request, "id"),
               [&](Conversation& conversation) { return add_given(*given->items, conversation); });
  if (!changed) return changed.error();
  return list_of(kept_items(*given->items, *changed));
}

Result<Json> list(Api&, const Conversations& all, const net::Request& request) {
  const auto page = read_page(request.query);
  if (!page) return page.error();
  const auto found = all.find(request.key_id, parameter(request, "id"));
  if (!found) return found.error();
  return page_of(found->items, *page);
}

Result<Json> retrieve_item(Api&, const Conversations& all, const net::Request& request) {
  const auto found = all.find(request.key_id, parameter(request, "id"));
  if (!found) return found.error();
  const std::string id = parameter(request, "item");
  const Json* item = item_named(*found, id);
  if (!item) return unknown_conversation_item(id);
  return *item;
}

Result<Json> erase_item(Api&, const Conversations& all, const net::Request& request) {
  const std::string id = parameter(request, "item");
  const auto changed =
      all.edit(request.key_id, parameter(request, "id"), [&](Conversation& conversation) -> Status {
        const Json* item = item_named(conversation, id);
        if (!item) return unknown_conversation_item(id);
        conversation.items.erase(static_cast<size_t>(item - &conversation.items.front()));
        return {};
      });
  if (!changed) return changed.error();
  return changed->object;
}

using Work = Result<Json> (*)(Api& api, const Conversations& all, const net::Request& request);

void reply_with(Api& api, const net::Request& request, const ReplyPtr& reply, Work work) {
  Result<Json> done = Error{ErrorCode::kUnsupported, "this server keeps no conversations"};
  if (api.responses() != nullptr) done = work(api, api.responses()->conversations(), request);
  reply->send(done ? net::json_response(200, dump(*done)) : error_response(done.error()));
}

}  // namespace

void create_conversation(Api& api, const net::Request& request, const ReplyPtr& reply) {
  reply_with(api, request, reply, create);
}

void show_conversation(Api& api, const net::Request& request, const ReplyPtr& reply) {
  reply_with(api, request, reply, retrieve);
}

void update_conversation(Api& api, const net::Request& request, const ReplyPtr& reply) {
  reply_with(api, request, reply, update);
}

void delete_conversation(Api& api, const net::Request& request, const ReplyPtr& reply) {
  reply_with(api, request, reply, erase_conversation);
}

void create_conversation_items(Api& api, const net::Request& request, const ReplyPtr& reply) {
  reply_with(api, request, reply, add);
}

void list_conversation_items(Api& api, const net::Request& request, const ReplyPtr& reply) {
  reply_with(api, request, reply, list);
}

void show_conversation_item(Api& api, const net::Request& request, const ReplyPtr& reply) {
  reply_with(api, request, reply, retrieve_item);
}

void delete_conversation_item(Api& api, const net::Request& request, const ReplyPtr& reply) {
  reply_with(api, request, reply, erase_item);
}

}  // namespace tandem::protocol::openai
