#include "protocol/openai/kept_responses.h"

#include <utility>

#include "protocol/openai/response_items.h"
#include "protocol/openai/responses_events.h"

namespace tandem::protocol::openai {
namespace {

std::string encode(const KeptResponse& kept) {
  Json out;
  out["response"] = kept.response;
  out["input"] = kept.input;
  out["previous"] = kept.previous;
  out["server"] = kept.server;
  out["background"] = kept.background;
  out["streamed"] = kept.streamed;
  out["began"] = kept.began;
  return dump(out);
}

Result<KeptResponse> decode(const std::string& bytes) {
  Json json = Json::parse(bytes, nullptr, false);
  try {
    KeptResponse kept{.response = std::move(json.at("response")),
                      .input = std::move(json.at("input")),
                      .previous = json.at("previous"),
                      .server = json.at("server"),
                      .background = json.at("background"),
                      .streamed = json.at("streamed"),
                      .began = json.at("began"),
                      .bytes = bytes.size()};
    if (kept.response.at("id").is_string() && kept.response.at("status").is_string() &&
        are_items(kept.response.at("output")) && are_items(kept.input)) {
      return kept;
    }
  } catch (const nlohmann::json::exception&) {
    // Of another shape.
  }
  return Error{ErrorCode::kCorrupt, "a kept response cannot be read: erase it"};
}

}  // namespace

std::string KeptResponse::conversation() const {
  const Json::json_pointer id("/conversation/id");
  const Json* found = response.contains(id) ? &response.at(id) : nullptr;
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

void append_items(const KeptResponse& kept, Json& items) {
  for (const Json& item : kept.input) items.push_back(item);
  const auto output = kept.response.find("output");
  if (output == kept.response.end()) return;
  for (const Json& item : *output) items.push_back(item);
}

KeptResponses::KeptResponses(store::Store& store, const KeptLimits& limits)
    : store_(store),
      records_(store.database(), "responses", limits.records),
      events_(store.database(), "responses.events", limits.events) {
  store_.queue().keep_trimmed(records_);
  store_.queue().keep_trimmed(events_);
}

Result<std::optional<KeptResponse>> KeptResponses::find(const std::string& owner,
                                                        const std::string& id) const {
  if (const Status settled = settle(); !settled) return settled.error();
  const auto bytes = records_.get(owner, id);
  if (!bytes) return bytes.error();
  if (!*bytes) return std::optional<KeptResponse>();
  auto kept = decode(**bytes);
  // Whoever makes it here is asked before the file.
  const bool lost = kept && kept->is_open() &&
                    (kept->server == store_.server() || !store_.is_alive(kept->server));
  if (lost) kept = failed(owner, std::move(*kept));
  if (!kept) return kept.error();
  return std::optional<KeptResponse>(std::move(*kept));
}

/// Of a server that ended before the response did, or could not write its end.
Result<KeptResponse> KeptResponses::failed(const std::string& owner, KeptResponse kept) const {
  kept.response["status"] = "failed";
  const char* why = kept.server == store_.server()
                        ? "the end of this response could not be written to disk: ask again"
                        : "the server ended before this response did: ask again";
  kept.response["error"] = Json{{"code", "server_error"}, {"message", why}};
  // Where that cannot be written either it is found again the next time.
  (void)records_.replace(owner, kept.id(), encode(kept));
  return kept;
}

void KeptResponses::later(size_t bytes, std::function<Status()> work) const {
  store_.queue().post(bytes, std::move(work));
}

Status KeptResponses::settle() const { return store_.queue().settle_to_read(); }

bool KeptResponses::put_later(const std::string& owner,
                              KeptResponse kept,
                              std::function<void(Error)> on_failure) const {
  std::string bytes = encode(kept);
  const size_t size = bytes.size();
  return store_.queue().post(
      size,
      [records = records_, owner, id = kept.id(), began = kept.began, bytes = std::move(bytes),
       on_failure = std::move(on_failure)]() -> Status {
        Status put = records.put(owner, id, bytes, began);
        if (!put) on_failure(put.error());
        return put;
      });
}

Status KeptResponses::put(const std::string& owner, const KeptResponse& kept) const {
  if (kept.id().empty()) return Error{ErrorCode::kInternal, "an answer has no response"};
  return records_.put(owner, kept.id(), encode(kept), kept.began);
}

Result<bool> KeptResponses::has(const std::string& owner, const std::string& id) const {
  if (const Status settled = settle(); !settled) return settled.error();
  return records_.has(owner, id);
}

void KeptResponses::check_later(const std::string& owner,
                                const std::string& id,
                                std::function<void()> on_gone) const {
  const auto look = [records = records_, owner, id, on_gone = std::move(on_gone)]() -> Status {
    const auto found = records.has(owner, id);
    if (found && !*found) on_gone();
    return {};
  };
  store_.queue().post(owner.size() + id.size(), look);
}

Status KeptResponses::follow(const std::string& owner,
                             const std::string& id,
                             const Visit& visit) const {
  if (const Status settled = settle(); !settled) return settled;
  const auto next = [&](const std::string& key,
                        const std::optional<std::string>& value) -> Result<std::string> {
    if (!value) return visit(key, std::nullopt);
    auto kept = decode(*value);
    if (!kept) return kept.error();
    return visit(key, std::move(*kept));
  };
  return records_.follow(owner, id, next);
}

void KeptResponses::replace_later(const std::string& owner,
                                  KeptResponse kept,
                                  Events events) const {
  size_t bytes = kept.bytes;
  for (const std::string& event : *events) bytes += event.size();
  store_.queue().post(bytes,
                      [records = records_, table = events_, owner, kept = std::move(kept),
                       events = std::move(events)]() -> Status {
                        const auto replaced = records.replace(owner, kept.id(), encode(kept));
                        if (!replaced) return replaced.error();
                        if (!*replaced || !kept.streamed) return {};
                        return table.put(owner, kept.id(), dump(Json(*events)), kept.began);
                      });
}

Result<std::optional<std::string>> KeptResponses::events(const std::string& owner,
                                                         const std::string& id,
                                                         size_t first) const {
  const auto bytes = events_.get(owner, id);
  if (!bytes) return bytes.error();
  if (!*bytes) return std::optional<std::string>();
  const Json list = Json::parse(**bytes, nullptr, false);
  if (!list.is_array()) return Error{ErrorCode::kCorrupt, "kept events cannot be read"};
  std::string out;
  for (size_t i = first; i < list.size(); ++i) out += list[i].get_ref<const std::string&>();
  return std::optional<std::string>(std::move(out));
}

Result<bool> KeptResponses::erase(const std::string& owner, const std::string& id) const {
  if (const Status settled = settle(); !settled) return settled.error();
  if (const auto gone = events_.erase(owner, id); !gone) return gone.error();
  return records_.erase(owner, id);
}

}  // namespace tandem::protocol::openai
