// Prompts of conversations in which the model's own answers are the tokens that it drew.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/conversation.h"
#include "chat/divergence.h"
#include "chat/turn_marks.h"
#include "chat/turn_recorder.h"
#include "replay/memory.h"
#include "text/checkpoint_text.h"

namespace tandem::chat {

/// Text of a prompt, and the turn that follows it.
struct PromptPiece {
  std::string text;
  std::shared_ptr<const replay::Turn> turn;  // null at the prompt's end
  size_t begin = 0;                          // of the text in the whole rendering, in bytes
  size_t end = 0;                            // without the turn's opening
};

struct ReplayedPrompt {
  std::string text;                 // as it would be without replay
  std::vector<PromptPiece> pieces;  // at least one
  std::optional<TurnStart> start;   // for the answer; unset: it is not to be remembered

  /// Puts more behind the prompt, of what belongs to the answer.
  void open_further(std::string_view words);

  /// Each piece by itself, so that tokens in front of a turn do not depend on what follows it.
  /// `spans`: which tokens are which of the text.
  Result<std::vector<gen::TokenId>> encode(const text::Tokenizer& tokenizer,
                                           std::vector<TextSpan>& spans) const;
};

/// Finds the turns of a conversation in a memory and puts their tokens where the template shows
/// them. A turn is replayed only where the prompt in front of it is, byte for byte and turn for
/// turn, the one it was drawn from, and where the template shows its thinking; so a prompt is
/// either what the model saw before, or what the template makes of the messages. Thread-safe.
class TurnReplay {
 public:
  /// Without a memory every prompt is as the template makes it.
  TurnReplay(const text::ModelText& model,
             const dialect::Dialect& dialect,
             std::shared_ptr<replay::Memory> memory,
             std::string handle_key);

  /// `counts`: whether what was found is counted. Errors: those of render().
  Result<ReplayedPrompt> prompt(const Conversation& conversation,
                                const RenderSettings& settings,
                                const std::string& salt,
                                bool counts) const;

  /// How many messages of the assistant have a handle in place of their thought and are no
  /// remembered turn: the handle is of another server or client, forged or too old, or the client
  /// says something else than the answer did. Nothing is shown of these thoughts.
  size_t thoughts_not_found(const Conversation& conversation,
                            const std::string& salt,
                            bool knows_developer) const;

 private:
  /// A thought that was put back: of a turn that a handle or the id of a call names, or of one that
  /// says the same behind the same words, which another conversation's may do as well.
  enum class Thought : uint8_t { kNone, kNamed, kSupposed };
  /// A message that is a remembered turn.
  struct Found {
    size_t message = 0;
    std::shared_ptr<const replay::Turn> turn;
    Thought thought = Thought::kNone;
  };
  /// What became of a turn: see replay::Counts.
  enum class Fate : uint8_t { kSpliced, kElsewhere, kNotShown };
  using Fates = std::vector<Fate>;  // one for each turn; none where no place of a turn is known
  struct Tally;

  std::vector<Found> find(Conversation& conversation,
                          const std::string& salt,
                          bool knows_developer,
                          TurnStart& start,
                          const Tally& tally) const;
  std::shared_ptr<const replay::Turn> by_handle(const std::string& handle,
                                                const TurnStart& start,
                                                const std::string& salt) const;
  std::shared_ptr<const replay::Turn> look_up(const Json& message, const TurnStart& start) const;
  std::optional<MarkedText> marked(const Conversation& conversation,
                                   const std::vector<Found>& turns,
                                   const RenderSettings& settings,
                                   size_t form) const;
  Fates splice(const Conversation& conversation,
               const std::vector<Found>& turns,
               const std::optional<MarkedText>& marks,
               ReplayedPrompt& out) const;
  static bool take_back_thoughts(const Conversation& original,
                                 Conversation& talk,
                                 std::vector<Found>& turns,
                                 const std::optional<MarkedText>& marks,
                                 const Fates& fates);
  static void count(const std::vector<Found>& turns, const Fates& fates, const Tally& tally);
  std::optional<size_t> end_of(const Conversation& conversation,
                               const Found& found,
                               size_t index,
                               const MarkedText& marks,
                               std::string_view text,
                               size_t begin) const;

  TurnStart start_for(const std::string& salt) const;

  const std::string fingerprint_;  // of all that makes text of tokens: another one remembers apart
  const std::optional<text::ThinkingMarkers> thinking_;
  const TurnEnds ends_;
  const std::shared_ptr<replay::Memory> memory_;
  const std::string handle_key_;
};

/// The end of a prompt that already belongs to its answer: an opened thought, or one that was
/// closed at once.
std::string_view opening_of(std::string_view prompt,
                            const std::optional<text::ThinkingMarkers>& thinking);

}  // namespace tandem::chat
