#include "protocol/openai/responses_state.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

namespace tandem::protocol::openai {
namespace {

Error previous_error(ErrorCode code, const std::string& message) {
  return {code, message, "previous_response_id"};
}

std::string shown(const std::string& id) { return literal(shortened(id, 80)); }

/// Of one that can be gone on with.
Status check_ended(const KeptResponse& kept) {
  if (const std::string conversation = kept.conversation(); !conversation.empty()) {
    return previous_error(ErrorCode::kInvalid,
                          fmt::format("the response {} belongs to a conversation: go on with "
                                      "conversation {}",
                                      shown(kept.id()), shown(conversation)));
  }
  if (kept.has_answer()) return {};
  return previous_error(ErrorCode::kInvalid,
                        fmt::format("the response {} is {}: only one that was completed, or cut at "
                                    "its length, can be gone on with",
                                    shown(kept.id()), kept.status()));
}

/// The responses of a conversation, from its last one on.
class Chain {
 public:
  explicit Chain(std::string last) : last_(std::move(last)) {}

  /// Gives the id of the one before; empty at the beginning.
  Result<std::string> take(const std::string& id, std::optional<KeptResponse> kept) {
    if (!kept) return missing(id);
    if (const Status ended = check_ended(*kept); !ended) return ended.error();
    bytes_ += kept->bytes;
    if (bytes_ > kMaxHistoryBytes) {
      return Error{ErrorCode::kTooLarge,
                   fmt::format("the conversation that {} ends has more than {} bytes", shown(last_),
                               kMaxHistoryBytes),
                   "input"};
    }
    seen_.insert(id);
    std::string next = kept->previous;
    responses_.push_back(std::move(*kept));
    return seen_.contains(next) ? std::string() : next;
  }

  /// The oldest first.
  Json items() const {
    Json items = Json::array();
    for (auto kept = responses_.rbegin(); kept != responses_.rend(); ++kept) {
      append_items(*kept, items);
    }
    return items;
  }

 private:
  Error missing(const std::string& id) const {
    if (responses_.empty()) {
      return previous_error(ErrorCode::kNotFound,
                            fmt::format("previous response {} is not kept here: send the whole "
                                        "conversation",
                                        shown(id)));
    }
    return previous_error(ErrorCode::kNotFound,
                          fmt::format("response {}, an earlier one of the conversation that {} "
                                      "ends, is no longer kept: send the whole conversation",
                                      shown(id), shown(last_)));
  }

  const std::string last_;
  std::vector<KeptResponse> responses_;  // the newest first
  std::set<std::string> seen_;
  size_t bytes_ = 0;
};

}  // namespace

Error unknown_response(const std::string& id) {
  return {ErrorCode::kNotFound,
          fmt::format("no response {} is kept here: only those asked for with store are, for a "
                      "limited time",
                      shown(id)),
          "response_id"};
}

Result<KeptResponse> ResponsesState::find(const std::string& owner, const std::string& id) {
  if (const auto run = runs_.find(owner, id)) {
    const auto kept = kept_.has(owner, id);
    if (kept && !*kept) return unknown_response(id);  // another server erased it, or a purge
    return run->record();
  }
  auto kept = kept_.find(owner, id);
  if (!kept) return kept.error();
  if (!*kept) return unknown_response(id);
  return std::move(**kept);
}

Result<Json> ResponsesState::history(const std::string& owner, const std::string& id) {
  auto last = find(owner, id);  // which may still be made here
  if (!last && last.error().code != ErrorCode::kNotFound) return last.error();
  Chain chain(id);
  auto next = chain.take(id, last ? std::optional(std::move(*last)) : std::nullopt);
  if (!next) return next.error();
  const Status all =
      kept_.follow(owner, *next, [&](const std::string& earlier, std::optional<KeptResponse> kept) {
        return chain.take(earlier, std::move(kept));
      });
  if (!all) return all.error();
  return chain.items();
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
