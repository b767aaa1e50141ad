// The chat service of a model whose generator is at hand.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chat/answer.h"
#include "chat/answer_grammar.h"
#include "chat/divergence.h"
#include "chat/embedder.h"
#include "chat/generations.h"
#include "chat/model_dialect.h"
#include "chat/service.h"
#include "chat/turn_replay.h"
#include "gen/generator.h"
#include "text/checkpoint_text.h"

namespace tandem::chat {

/// What the service is given besides its model.
struct LocalServiceOptions {
  Json template_arguments = Json::object();  // defaults for chat_template_kwargs
  std::function<text::LocalTime()> local_time = text::machine_time;
  std::function<uint64_t()> draw_seed = {};  // unset: from the system's random device
  std::string tool_dialect = {};  // name of a dialect; empty: the one that the model shows
  /// Told of each generation before the generator is, with its id there; may be empty.
  std::function<void(const Request&, gen::RequestId)> on_choice = {};
  /// Said at the end of a thought that is closed for the model, such as "Time to answer."
  std::string thinking_wrap_up = {};
  bool prepares_grammars = false;  // at once, in the background; else with the first one
  std::shared_ptr<replay::Memory> memory = {};  // of answers; null: none is shown as it was drawn
  std::string handle_key = {};                  // of handles on them (replay/handle.h)
};

/// Serves conversations and raw prompts. A raw prompt's answer is all text: thinking is told apart
/// only in conversations. With several choices, events that come before the last one is accepted
/// are delivered by the submitting thread. Thread-safe.
class LocalService final : public Service {
 public:
  /// The generator must outlive the service and every request's last event.
  LocalService(gen::Generator& generator,
               text::ModelText model_text,
               ModelInfo info,
               LocalServiceOptions options = {});
  /// Requests that still run get their last events later, from the generator.
  ~LocalService() override;
  LocalService(const LocalService&) = delete;
  LocalService& operator=(const LocalService&) = delete;

  /// The context is that of the model or what the generator can hold, whichever is less; the
  /// generator may not know before it is ready.
  ModelInfo model() const override;
  Result<Accepted> submit(Request request, Sink sink) override;
  Result<uint32_t> count_prompt(const Request& request) const override;
  Result<std::string> render(const Conversation& conversation) const override;
  Result<std::vector<gen::TokenId>> encode(std::string_view text, bool add_special) const override;
  Result<std::vector<std::string>> token_bytes(const std::vector<gen::TokenId>& ids) const override;
  Result<std::string> decode(const std::vector<gen::TokenId>& ids) const override;
  std::vector<Warning> warnings(const Request& request) const override;
  Result<uint64_t> embed(EmbeddingRequest request, EmbeddingSink sink) override;
  bool cancel(const std::string& id) override;

 private:
  class Call;
  class Calls;

  struct Prompt {
    std::vector<gen::TokenId> ids;
    bool is_conversation = false;
    bool in_thinking = false;
    std::optional<TurnStart> start = {};  // what the answer is remembered with
    std::string text = {};                // of conversations
    std::vector<TextSpan> spans = {};     // which tokens are which of it
  };

  std::shared_ptr<const AnswerRules> make_rules(const Request& request,
                                                const Prompt& prompt,
                                                const gen::Request& generation) const;
  /// `is_counted`: whether what is replayed counts.
  Result<Prompt> make_prompt(const Request& request, bool is_counted) const;
  Result<Prompt> render_prompt(const Request& request,
                               const Conversation& conversation,
                               bool is_counted) const;
  RenderSettings render_settings(const Conversation& conversation) const;
  Status check_template() const;
  TurnRecorder::Settings recording(const Request& request, Prompt& prompt) const;
  std::optional<Divergence> divergence(const Request& request,
                                       const Prompt& prompt,
                                       TurnRecorder::Settings& recording) const;
  Result<Prompt> raw_prompt(const RawPrompt& raw) const;
  Status check(const Request& request) const;
  Status check_ids(const std::vector<gen::TokenId>& ids, const char* field) const;
  Status check_fits(const Prompt& prompt) const;
  GrammarPlace grammar_place(const Request& request, bool in_thinking) const;
  Result<std::vector<gen::TokenId>> encode_input(const RawPrompt& input,
                                                 const std::string& field) const;
  gen::Request to_generation(const Request& request, const Prompt& prompt) const;
  std::vector<gen::LogitBias> thinking_bias(const Request& request) const;
  uint32_t vocab() const;
  uint32_t max_context() const;  // 0: not known yet

  gen::Generator& generator_;
  const text::ModelText text_;
  const ModelInfo info_;
  const LocalServiceOptions options_;
  const dialect::Dialect& dialect_;
  const std::vector<gen::TokenId> thinking_close_;
  const std::vector<gen::TokenId> hesitations_;
  const std::unique_ptr<grammar::Compiler> compiler_;
  const TurnReplay replay_;
  const std::shared_ptr<replay::KnownPrompts> known_;
  const std::shared_ptr<Calls> calls_;
  const std::shared_ptr<Generations> generations_;  // shared with sinks, which may outlive this
  Embedder embedder_;
};

}  // namespace tandem::chat
