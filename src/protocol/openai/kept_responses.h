// Responses that outlive their request: as records in the state file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "protocol/json.h"
#include "store/store.h"

namespace tandem::protocol::openai {

/// What a request may have of kept items, and a conversation too: more than any model's context,
/// and no more than a body may have.
constexpr size_t kMaxHistoryBytes = size_t{32} << 20;

struct KeptResponse {
  Json response = {};         // as clients see it
  Json input = {};            // its own items, each with an id; without those of earlier responses
  std::string previous = {};  // the id of the response that it goes on with; empty: none
  std::string server = {};    // the run of the server that makes it; see store::Store::server
  bool background = false;
  bool streamed = false;  // its events are kept too
  int64_t began = 0;      // microseconds of Unix time
  size_t bytes = 0;       // of the record, once it was read; before that of its input, as JSON

  std::string id() const { return response.value("id", ""); }
  std::string status() const { return response.value("status", ""); }
  /// Whether it is still to be made.
  bool is_open() const { return status() == "queued" || status() == "in_progress"; }
  /// Whether it came to its end, or to its limit.
  bool has_answer() const { return status() == "completed" || status() == "incomplete"; }
  /// The conversation that it belongs to; empty: none.
  std::string conversation() const;
};

/// The events of a response by sequence number, as bytes.
using Events = std::shared_ptr<const std::vector<std::string>>;

/// What may be kept of each kind.
struct KeptLimits {
  store::Limits records;
  store::Limits events;
};

/// Items that were generated or given, the oldest first: input and output.
void append_items(const KeptResponse& kept, Json& items);

/// Reads and writes records; `owner` is the id of an API key. Thread-safe. Errors: those of
/// store::BlobTable; kBusy: what was left to be written is not written in time.
class KeptResponses {
 public:
  KeptResponses(store::Store& store, const KeptLimits& limits);

  /// Waits for writes that were left. A record that a dead server was making is failed, here and in
  /// the file.
  Result<std::optional<KeptResponse>> find(const std::string& owner, const std::string& id) const;

  /// Leaves a record to be written. `on_failure` comes from another thread. False: too much waits.
  bool put_later(const std::string& owner,
                 KeptResponse kept,
                 std::function<void(Error)> on_failure) const;

  /// Writes a record, unless a purge came since it began.
  Status put(const std::string& owner, const KeptResponse& kept) const;

  /// Leaves other work on what is kept to the same thread. Dropped as above.
  void later(size_t bytes, std::function<Status()> work) const;

  /// Waits until what was left is written. kBusy.
  Status settle() const;

  /// Leaves a record to be written in place of an earlier one, if that is still there, and with it
  /// its events, which nobody changes any more, when they are kept. Dropped as above.
  void replace_later(const std::string& owner, KeptResponse kept, Events events) const;

  /// Whether there is a record, once writes that were left are written.
  Result<bool> has(const std::string& owner, const std::string& id) const;

  /// The same from another thread; `on_gone` is called when there is none.
  void check_later(const std::string& owner,
                   const std::string& id,
                   std::function<void()> on_gone) const;

  /// Takes a record, or nothing where none is kept under this id, and gives the id of the next one;
  /// empty: that was the last.
  using Visit =
      std::function<Result<std::string>(const std::string& id, std::optional<KeptResponse> kept)>;

  /// One record after another, as they are at one moment. Errors: those of `visit` too.
  Status follow(const std::string& owner, const std::string& id, const Visit& visit) const;

  /// The events of a streamed response, by sequence number from `first`, as bytes. Nothing when
  /// they are not kept.
  Result<std::optional<std::string>> events(const std::string& owner,
                                            const std::string& id,
                                            size_t first) const;

  /// With its events. False: there was none.
  Result<bool> erase(const std::string& owner, const std::string& id) const;

  /// Names this run of the server.
  const std::string& server() const { return store_.server(); }

 private:
  Result<KeptResponse> failed(const std::string& owner, KeptResponse kept) const;

  store::Store& store_;
  const store::BlobTable records_;
  const store::BlobTable events_;
};

}  // namespace tandem::protocol::openai
