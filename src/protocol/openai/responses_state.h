// What the Responses wire holds between requests: kept responses, and those still being made.
#pragma once

#include <optional>
#include <string>

#include "protocol/openai/background_run.h"
#include "protocol/openai/conversations.h"
#include "protocol/openai/kept_responses.h"

namespace tandem::protocol::openai {

/// Thread-safe. `owner` is the id of the API key that asks: nobody sees others' responses.
class ResponsesState {
 public:
  /// `limits` are those of all that is kept here together.
  ResponsesState(store::Store& store, const store::Limits& limits)
      : kept_(store, {.records = limits.share(5), .events = limits.share(1)}),
        conversations_(store, limits.share(2)) {}

  const KeptResponses& kept() const { return kept_; }
  const Conversations& conversations() const { return conversations_; }
  BackgroundRuns& runs() { return runs_; }

  /// As it is now. kNotFound, field "response_id"; else as KeptResponses::find.
  Result<KeptResponse> find(const std::string& owner, const std::string& id);

  /// All items of the conversation that ends with this response, the oldest first. Field
  /// "previous_response_id": kNotFound (it, or an earlier one, is not kept), kInvalid (it has not
  /// ended, or failed). kTooLarge, field "input".
  Result<Json> history(const std::string& owner, const std::string& id);

  /// The items of a response, its input first; null when it is not kept. `bytes` is how much was
  /// read so far for a request, and grows. kTooLarge, field "input": that is over
  /// kMaxHistoryBytes.
  Result<Json> items(const std::string& owner, const std::string& id, size_t& bytes);

 private:
  const KeptResponses kept_;
  const Conversations conversations_;
  BackgroundRuns runs_;
};

/// kNotFound, field "response_id".
Error unknown_response(const std::string& id);

}  // namespace tandem::protocol::openai
