#include "protocol/openai/responses_state.h"

#include <fmt/format.h>

#include <set>
#include <vector>

namespace tandem::protocol::openai {
namespace {

Error previous_error(ErrorCode code, const std::string& message) {
  return {code, message, "previous_response_id"};
}

std::string shown(const std::string& id) { return literal(shortened(id, 80)); }

/// Of one that can be gone on with.
Status check_ended(const KeptResponse& kept) {
  const std::string status = kept.status();
  if (status == "completed" || status == "incomplete") return {};
  return previous_error(ErrorCode::kInvalid,
                        fmt::format("the response {} is {}: only one that was completed, or cut at "
                                    "its length, can be gone on with",
                                    shown(kept.id()), status));
}

}  // namespace

Error unknown_response(const std::string& id) {
  return {ErrorCode::kNotFound,
          fmt::format("no response {} is kept here: only those asked for with store are, for a "
                      "limited time",
                      shown(id)),
          "response_id"};
}

Result<KeptResponse> ResponsesState::find(const std::string& owner, const std::string& id) {
  if (const auto run = runs_.find(owner, id)) return run->record();
  auto kept = kept_.find(owner, id);
  if (!kept) return kept.error();
  if (!*kept) return unknown_response(id);
  return std::move(**kept);
}

Result<Json> ResponsesState::history(const std::string& owner, const std::string& id) {
  std::vector<KeptResponse> chain;  // the newest first
  std::set<std::string> seen;
  size_t bytes = 0;
  for (std::string next = id; !next.empty() && seen.insert(next).second;) {
    auto kept = find(owner, next);
    if (!kept && kept.error().code != ErrorCode::kNotFound) return kept.error();
    if (!kept && chain.empty()) {
      return previous_error(ErrorCode::kNotFound,
                            fmt::format("previous response {} is not kept here: send the whole "
                                        "conversation",
                                        shown(id)));
    }
    if (!kept) {
      return previous_error(ErrorCode::kNotFound,
                            fmt::format("response {}, an earlier one of the conversation that {} "
                                        "ends, is no longer kept: send the whole conversation",
                                        shown(next), shown(id)));
    }
    if (const Status ended = check_ended(*kept); !ended) return ended.error();
    bytes += kept->bytes;
    if (bytes > kMaxHistoryBytes) {
      return Error{ErrorCode::kTooLarge,
                   fmt::format("the conversation that {} ends has more than {} bytes", shown(id),
                               kMaxHistoryBytes),
                   "input"};
    }
    next = kept->previous;
    chain.push_back(std::move(*kept));
  }
  Json items = Json::array();
  for (auto kept = chain.rbegin(); kept != chain.rend(); ++kept) append_items(*kept, items);
  return items;
}

Result<Json> ResponsesState::items(const std::string& owner, const std::string& id, size_t& bytes) {
  const auto kept = find(owner, id);
  if (!kept && kept.error().code == ErrorCode::kNotFound) return Json();
  if (!kept) return kept.error();
  bytes += kept->bytes;
  if (bytes > kMaxHistoryBytes) {
    return Error{ErrorCode::kTooLarge,
                 fmt::format("the responses that 'input' refers to have more than {} bytes: send "
                             "their items instead",
                             kMaxHistoryBytes),
                 "input"};
  }
  Json items = Json::array();
  append_items(*kept, items);
  return items;
}

}  // namespace tandem::protocol::openai
