// A generator that plays a script in the model's own words: its tokens, its dialect.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "chat/request.h"
#include "dialect/dialect.h"
#include "gen/fake.h"
#include "script/script.h"
#include "text/checkpoint_text.h"

namespace tandem::script {

/// Deterministic: what a request gets depends on the request alone, and what it reuses on those
/// before it. Nothing is drawn, so sampling and grammars have no effect. Thread-safe.
class Player final : public gen::Generator {
 public:
  /// The dialect and the model's text are those of the service in front.
  Player(Script script,
         text::ModelText model_text,
         const dialect::Dialect& dialect,
         uint32_t max_context);

  /// What a request to come says: for LocalServiceOptions::on_choice.
  void announce(const chat::Request& request, gen::RequestId id);

  Status submit(gen::Request request, gen::Sink sink) override;
  void cancel(gen::RequestId id) override { fake_.cancel(id); }
  gen::Limits limits() const override { return fake_.limits(); }
  /// From now on new requests are refused: kUnavailable. What goes on with an answer is not new.
  void drain() { draining_ = true; }
  bool is_draining() const { return draining_; }
  /// Ends what still runs with Failed, and takes no more.
  void stop() { fake_.stop(); }

  /// Requests without a last event.
  size_t running() const { return fake_.running(); }

 private:
  struct Announced {
    Result<Plan> plan;
    bool continues = false;  // the answer goes on with a message
  };
  struct Remembered {
    std::string salt;
    std::vector<gen::TokenId> tokens;
  };

  gen::FakeReply reply(const gen::Request& request);
  Result<std::vector<gen::TokenId>> tokens_of(const Announced& announced,
                                              const gen::Request& request) const;
  bool leaves_thinking(const gen::Request& request, bool continues) const;
  uint32_t remember(const gen::Request& request, const std::vector<gen::TokenId>& answer);

  static constexpr size_t kRemembered = 64;

  const Script script_;
  const text::ModelText text_;
  const dialect::Dialect& dialect_;
  std::atomic<bool> draining_ = false;
  std::mutex mutex_;  // guards what follows
  std::map<gen::RequestId, Announced> announced_;
  std::deque<Remembered> remembered_;  // the newest first
  gen::Fake fake_;                     // last: its thread ends first
};

}  // namespace tandem::script
