// /v1/conversations and their items.
#include <fmt/format.h>

#include <algorithm>
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

/// What of a body is a conversation's: null where it has no such field.
struct Given {
  Json metadata;
  Json items;
};

/// Items of the field, with ids of their own.
Json read_given_items(Fields& fields) {
  const Json* items = fields.array("items");
  if (!items) return nullptr;
  if (items->size() > kMaxAdded) {
    fields.refuse("items", fmt::format("must have at most {} items at a time, not {}", kMaxAdded,
                                       items->size()));
  } else {
    check_items(fields, *items, "items");
  }
  if (fields.error()) return nullptr;
  return normal_items(*items, new_request_id("conv_"));
}

Result<Given> read_given(const net::Request& request) {
  const auto body = parse_body(request.body.empty() ? "{}" : request.body);
  if (!body) return body.error();
  Fields fields(*body);
  Given given;
  check_metadata(fields);
  if (const Json* metadata = fields.object("metadata")) given.metadata = *metadata;
  given.items = read_given_items(fields);
  if (fields.error()) return *fields.error();
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
      conversation.items, [&](const Json& item) { return item.value("id", "") == id; });
  return found == conversation.items.end() ? nullptr : &*found;
}

Error unknown_conversation_item(const std::string& id) {
  return {ErrorCode::kNotFound,
          fmt::format("the conversation has no item {}", literal(shortened(id, 80))), "item_id"};
}

Result<Json> create(const Conversations& all, const net::Request& request) {
  auto given = read_given(request);
  if (!given) return given.error();
  Conversation made;
  made.object["id"] = new_request_id("conv_");
  made.object["object"] = "conversation";
  made.object["created_at"] = unix_seconds();
  made.object["metadata"] = given->metadata.is_null() ? Json::object() : given->metadata;
  if (!given->items.is_null()) add_items(given->items, made);
  if (const Status done = all.create(request.key_id, made); !done) return done.error();
  return made.object;
}

Result<Json> retrieve(const Conversations& all, const net::Request& request) {
  const auto found = all.find(request.key_id, parameter(request, "id"));
  if (!found) return found.error();
  return found->object;
}

Result<Json> update(const Conversations& all, const net::Request& request) {
  const auto given = read_given(request);
  if (!given) return given.error();
  if (given->metadata.is_null()) return missing("metadata");
  const auto changed =
      all.edit(request.key_id, parameter(request, "id"), [&](Conversation& conversation) {
        conversation.object["metadata"] = given->metadata;
        return Status();
      });
  if (!changed) return changed.error();
  return changed->object;
}

Result<Json> erase_conversation(const Conversations& all, const net::Request& request) {
  const std::string id = parameter(request, "id");
  if (const Status done = all.erase(request.key_id, id); !done) return done.error();
  return Json{{"id", id}, {"object", "conversation.deleted"}, {"deleted", true}};
}

Result<Json> add(const Conversations& all, const net::Request& request) {
  const auto given = read_given(request);
  if (!given) return given.error();
  if (given->items.is_null()) return missing("items");
  const auto changed =
      all.edit(request.key_id, parameter(request, "id"), [&](Conversation& conversation) {
        add_items(given->items, conversation);
        return Status();
      });
  if (!changed) return changed.error();
  return list_of(given->items);
}

Result<Json> list(const Conversations& all, const net::Request& request) {
  const auto page = read_page(request.query);
  if (!page) return page.error();
  const auto found = all.find(request.key_id, parameter(request, "id"));
  if (!found) return found.error();
  return page_of(found->items, *page);
}

Result<Json> retrieve_item(const Conversations& all, const net::Request& request) {
  const auto found = all.find(request.key_id, parameter(request, "id"));
  if (!found) return found.error();
  const std::string id = parameter(request, "item");
  const Json* item = item_named(*found, id);
  if (!item) return unknown_conversation_item(id);
  return *item;
}

Result<Json> erase_item(const Conversations& all, const net::Request& request) {
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

using Work = Result<Json> (*)(const Conversations& all, const net::Request& request);

void reply_with(Api& api, const net::Request& request, const ReplyPtr& reply, Work work) {
  Result<Json> done = Error{ErrorCode::kUnsupported, "this server keeps no conversations"};
  if (api.responses() != nullptr) done = work(api.responses()->conversations(), request);
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
