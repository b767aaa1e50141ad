// Feeds the inputs of embedding requests to a generator, a few at a time.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "chat/embedding.h"
#include "gen/generator.h"

namespace tandem::chat {

/// A request has at most kMostInFlight inputs with the generator, so that a long one fills no
/// queue; requests take turns. A generator whose queue is full is asked again a little later, but
/// for a request that has not begun, which it refuses. Thread-safe.
class Embedder {
 public:
  static constexpr size_t kMostInFlight = 8;

  /// The generator must outlive the embedder and every input's last event. `next_id` names the
  /// generator's requests; any thread.
  Embedder(gen::Generator& generator, std::function<gen::RequestId()> next_id);
  /// Requests that run end with kUnavailable.
  ~Embedder();
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  /// Takes a request whose inputs are encoded, one prompt for each. kConflict: the id is in use.
  Status start(EmbeddingRequest request,
               std::vector<std::vector<gen::TokenId>> prompts,
               EmbeddingSink sink);

  /// False when no such request runs.
  bool cancel(const std::string& id);

 private:
  struct Job;
  struct Shared;

  void run();
  void submit(const std::shared_ptr<Job>& job, size_t input);

  gen::Generator& generator_;
  const std::function<gen::RequestId()> next_id_;
  const std::shared_ptr<Shared> shared_;  // also the generator's sinks hold it
  std::thread thread_;
};

}  // namespace tandem::chat
