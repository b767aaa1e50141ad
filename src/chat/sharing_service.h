// Identical requests that run at the same time share one generation.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/service.h"

namespace tandem::chat {

/// In front of another service. A request joins one that runs when both are equal in all but id and
/// client, belong to the same salt, and are greedy or have the same seed, so that their answers
/// would be the same, and their clients are given no handle on it; it gets all events so far, then
/// each as it comes. A cancelled request leaves the others; the last one ends the generation. Who
/// joined counts its usage as if alone. Thread-safe.
class SharingService final : public Service {
 public:
  /// The other service must outlive this and every request's last event.
  explicit SharingService(Service& inner);
  ~SharingService() override;

  ModelInfo model() const override { return inner_.model(); }
  Result<Accepted> submit(Request request, Sink sink) override;
  Result<uint32_t> count_prompt(const Request& request) const override {
    return inner_.count_prompt(request);
  }
  Result<std::string> render(const Conversation& conversation) const override {
    return inner_.render(conversation);
  }
  Result<std::vector<gen::TokenId>> encode(std::string_view text, bool add_special) const override {
    return inner_.encode(text, add_special);
  }
  Result<std::vector<std::string>> token_bytes(
      const std::vector<gen::TokenId>& ids) const override {
    return inner_.token_bytes(ids);
  }
  Result<std::string> decode(const std::vector<gen::TokenId>& ids) const override {
    return inner_.decode(ids);
  }
  std::vector<Warning> warnings(const Request& request) const override {
    return inner_.warnings(request);
  }
  Result<uint64_t> embed(EmbeddingRequest request, EmbeddingSink sink) override {
    return inner_.embed(std::move(request), std::move(sink));
  }
  bool cancel(const std::string& id) override;

  /// Requests that joined another, ever.
  uint64_t joined() const { return joined_; }

 private:
  class Shared;
  class Table;

  Service& inner_;
  const std::shared_ptr<Table> table_;
  std::atomic<uint64_t> joined_ = 0;
};

}  // namespace tandem::chat
