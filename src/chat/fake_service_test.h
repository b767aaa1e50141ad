// A scripted Service for tests of protocols: events come from a script, or by hand.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "chat/service.h"

namespace tandem::chat {

class FakeService final : public Service {
 public:
  /// The events of a request. Empty: the test sends them with emit().
  using Script = std::function<std::vector<Event>(const Request&)>;

  explicit FakeService(ModelInfo model, Script script = {}, std::chrono::milliseconds pace = {})
      : model_(std::move(model)), script_(std::move(script)), pace_(pace) {}
  FakeService(const FakeService&) = delete;
  FakeService& operator=(const FakeService&) = delete;

  ~FakeService() override { stop(); }

  /// Cancels what the script still plays: no event of it comes after this.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& player : std::exchange(players_, {})) player.join();
  }

  ModelInfo model() const override { return model_; }

  Result<Accepted> submit(Request request, Sink sink) override {
    const std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    const uint32_t tokens = prompt_tokens(request);
    if (model_.max_context > 0 && tokens >= model_.max_context) {
      return Error{ErrorCode::kTooLarge,
                   "prompt is too long: " + std::to_string(tokens) + " tokens > " +
                       std::to_string(model_.max_context - 1) + " maximum (a context of " +
                       std::to_string(model_.max_context) + ")",
                   "prompt"};
    }
    const std::string id = request.id;
    if (running_.contains(id)) return Error{ErrorCode::kConflict, "the id is in use", "id"};
    running_[id] = {.sink = std::move(sink), .open = request.choices};
    last_ = request;
    salts_.insert(request.salt);
    order_.push_back(id);
    if (script_) {
      players_.emplace_back([this, id, events = script_(request)] { play(id, events); });
    }
    changed_.notify_all();
    return Accepted{.prompt_tokens = tokens, .divergence = divergence_};
  }

  Result<uint32_t> count_prompt(const Request& request) const override {
    const std::lock_guard lock(mutex_);
    salts_.insert(request.salt);
    if (refusal_) return *refusal_;
    return prompt_tokens(request);
  }

  /// A prompt is its messages' JSON, a token a byte.
  Result<std::string> render(const Conversation& conversation) const override {
    const std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    return conversation.messages.dump() + (conversation.tools.is_null() ? "" : "tools") +
           conversation.template_arguments.dump();
  }

  Result<std::vector<gen::TokenId>> encode(std::string_view text, bool add_special) const override {
    std::vector<gen::TokenId> ids;
    if (add_special) ids.push_back(kSpecial);
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }

  Result<std::vector<std::string>> token_bytes(
      const std::vector<gen::TokenId>& ids) const override {
    std::vector<std::string> out;
    for (const gen::TokenId id : ids) {
      if (id < 0 || id > kSpecial) return Error{ErrorCode::kInvalid, "no such token", "tokens"};
      out.push_back(id == kSpecial ? "<s>" : std::string(1, static_cast<char>(id)));
    }
    return out;
  }

  Result<std::string> decode(const std::vector<gen::TokenId>& ids) const override {
    const auto pieces = token_bytes(ids);
    if (!pieces) return pieces.error();
    std::string out;
    for (const std::string& piece : *pieces) out += piece;
    return out;
  }

  /// A vector of the input's own, of 8 numbers or as many as are asked for, from another thread. An
  /// input that is "too long" is.
  Result<uint64_t> embed(EmbeddingRequest request, EmbeddingSink sink) override {
    const std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    Vectors vectors;
    uint64_t tokens = 0;
    for (const RawPrompt& input : request.inputs) {
      const auto* text = std::get_if<std::string>(&input.prompt);
      tokens += text ? 7 : std::get<std::vector<gen::TokenId>>(input.prompt).size();
      if (text && *text == "too long")
        return Error{ErrorCode::kTooLarge, "input is too long: 9 tokens > 8 maximum", "input"};
      auto vector = unit_vector(vector_of(input), request.dimensions);
      if (!vector) return vector.error();
      vectors.push_back(*std::move(vector));
    }
    last_embedding_ = request;
    embedding_sinks_[request.id] = std::move(sink);
    if (script_)
      players_.emplace_back([this, id = request.id, tokens, vectors = std::move(vectors)] {
        emit_embedding(id, EmbeddingProgress{.done = tokens, .total = tokens});
        emit_embedding(id, vectors);
      });
    order_.push_back(request.id);
    changed_.notify_all();
    return tokens;
  }

  /// Sends an embedding's event from the calling thread.
  void emit_embedding(const std::string& id, EmbeddingEvent event) {
    EmbeddingSink sink;
    {
      const std::lock_guard lock(mutex_);
      const auto entry = embedding_sinks_.find(id);
      if (entry == embedding_sinks_.end()) return;
      sink = entry->second;
      if (!std::holds_alternative<EmbeddingProgress>(event)) embedding_sinks_.erase(entry);
    }
    sink(std::move(event));
  }

  EmbeddingRequest last_embedding() const {
    const std::lock_guard lock(mutex_);
    return last_embedding_;
  }

  std::vector<Warning> warnings(const Request& request) const override {
    const std::lock_guard lock(mutex_);
    salts_.insert(request.salt);
    return warnings_;
  }

  bool cancel(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    if (!running_.contains(id) && !embedding_sinks_.contains(id)) return false;
    cancelled_.insert(id);
    changed_.notify_all();
    return true;
  }

  /// Further submissions get this error.
  void refuse(Error error) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(error);
  }

  /// What every further request is warned of.
  void warn(std::vector<Warning> warnings) {
    const std::lock_guard lock(mutex_);
    warnings_ = std::move(warnings);
  }

  /// Where every further request left what was known.
  void diverge(Divergence divergence) {
    const std::lock_guard lock(mutex_);
    divergence_ = std::move(divergence);
  }

  /// Waits for the n-th submission and returns its id; empty when it does not come in 10 s.
  std::string wait_for_submission(size_t n = 1) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(10), [&] { return order_.size() >= n; });
    return came ? order_[n - 1] : std::string();
  }

  bool wait_for_cancel(const std::string& id, std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return cancelled_.contains(id); });
  }

  Request last_request() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }

  /// The salts of all that was asked about prompts.
  std::set<std::string> salts() const {
    const std::lock_guard lock(mutex_);
    return salts_;
  }

  /// Sends an event from the calling thread.
  void emit(const std::string& id, Event event) {
    Sink sink;
    {
      const std::lock_guard lock(mutex_);
      const auto entry = running_.find(id);
      if (entry == running_.end()) return;
      sink = entry->second.sink;
      if (event.is_last() && --entry->second.open == 0) running_.erase(entry);
    }
    sink(std::move(event));
  }

  /// Token ids count as they are; every other prompt has seven tokens.
  static uint32_t prompt_tokens(const Request& request) {
    const auto* raw = std::get_if<RawPrompt>(&request.input);
    const auto* ids = raw ? std::get_if<std::vector<gen::TokenId>>(&raw->prompt) : nullptr;
    return ids ? static_cast<uint32_t>(ids->size()) : 7;
  }

  static constexpr gen::TokenId kSpecial = 256;

 private:
  struct Running {
    Sink sink;
    uint32_t open = 0;
  };

  static std::vector<float> vector_of(const RawPrompt& input) {
    size_t key = 1;
    if (const auto* text = std::get_if<std::string>(&input.prompt))
      key = std::hash<std::string>()(*text);
    else
      for (const gen::TokenId id : std::get<std::vector<gen::TokenId>>(input.prompt))
        key = key * 31 + static_cast<size_t>(id);
    std::vector<float> out;
    for (int i = 0; i < 8; ++i) out.push_back(static_cast<float>((key >> (4 * i)) % 16) - 7.25F);
    return out;
  }

  void play(const std::string& id, const std::vector<Event>& events) {
    std::set<uint32_t> ended;
    for (const Event& event : events) {
      std::unique_lock lock(mutex_);
      const bool stop =
          changed_.wait_for(lock, pace_, [&] { return stopping_ || cancelled_.contains(id); });
      const auto entry = running_.find(id);
      const uint32_t choices = entry == running_.end() ? 0 : entry->second.open;
      lock.unlock();
      if (stop) {
        const auto all = static_cast<uint32_t>(ended.size()) + choices;
        for (uint32_t choice = 0; choice < all; ++choice) {
          if (ended.contains(choice)) continue;
          emit(id, {.choice = choice,
                    .body = Failed{.error = {ErrorCode::kCancelled, "the request was cancelled"},
                                   .usage = {}}});
        }
        return;
      }
      if (event.is_last()) ended.insert(event.choice);
      emit(id, event);
    }
  }

  const ModelInfo model_;
  const Script script_;
  const std::chrono::milliseconds pace_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Running> running_;
  std::map<std::string, EmbeddingSink> embedding_sinks_;
  EmbeddingRequest last_embedding_;
  std::vector<std::string> order_;
  std::set<std::string> cancelled_;
  std::optional<Error> refusal_;
  std::vector<Warning> warnings_;
  std::optional<Divergence> divergence_;
  Request last_;
  mutable std::set<std::string> salts_;
  bool stopping_ = false;
  std::vector<std::thread> players_;
};

}  // namespace tandem::chat
