// Remembers an answer while it is given.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chat/event.h"
#include "replay/known_prompts.h"
#include "replay/lineage.h"
#include "replay/memory.h"
#include "text/tokenizer.h"

namespace tandem::chat {

/// What an answer will be remembered with.
struct TurnStart {
  std::string owner;
  replay::Lineage lineage;  // of the conversation in front of it
  replay::Digest::Value before{};
  uint64_t run_bytes = 0;
  std::string frame;
  std::string opening;
  int64_t began = 0;  // when the request came, in microseconds of Unix time
};

/// Watches one choice. Only an answer that came to an end is remembered, and only where its tokens
/// say what the client saw: nothing cut out by a stop string, no call closed for the model, no
/// thought left open. Not thread-safe.
class TurnRecorder {
 public:
  /// Without a memory or a start nothing is remembered.
  struct Settings {
    std::shared_ptr<replay::Memory> memory = {};
    std::optional<TurnStart> start = {};
    std::string id = {};      // of the turn
    bool cuts_calls = false;  // the answer ends behind its first call, before that one's markup
    bool outlives = false;    // the server, where it has thinking: its client gets a handle on it
    std::vector<gen::TokenId> stop_ids = {};
    std::shared_ptr<const text::Tokenizer> tokenizer = {};
    std::shared_ptr<replay::KnownPrompts> known = {};
    replay::KnownPrompts::Ticket ticket = {};  // of the prompt, for its first choice

    /// The same for one of several choices.
    Settings of_choice(uint32_t choice) const;
  };
  explicit TurnRecorder(Settings settings) : settings_(std::move(settings)) {}

  /// What the client is to hear next, and the answer's tokens so far, without those behind its end.
  void take(const decltype(Event::body)& body, std::span<const gen::TokenId> tokens);

 private:
  void end(const End& end, std::span<const gen::TokenId> tokens);
  bool is_safe(const End& end) const;
  bool ends_inside_character() const;
  std::vector<std::string> keys() const;

  const Settings settings_;
  replay::Turn turn_;
  bool in_thinking_ = false;  // at the end of what was said
  bool in_call_ = false;
  bool has_broken_call_ = false;
};

/// True for the ids that this server gives to calls: nobody can guess them.
bool is_drawn_call_id(std::string_view id);

}  // namespace tandem::chat
