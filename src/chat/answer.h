// One choice of a request: drawn tokens in, events out.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chat/event.h"
#include "chat/guard_repetition.h"
#include "chat/stop_finder.h"
#include "dialect/parser.h"
#include "gen/event.h"
#include "text/checkpoint_text.h"
#include "text/detokenizer.h"

namespace tandem::chat {

using EventBody = decltype(Event::body);

/// What the choices of one request share. Immutable.
struct AnswerRules {
  std::shared_ptr<const text::Tokenizer> tokenizer = {};
  std::vector<text::TokenId> stop_ids = {};  // their text is never delivered
  bool ignore_eos = false;                   // … unless they do not end the answer
  std::shared_ptr<const StopRules> stops = {};
  std::shared_ptr<const dialect::Rules> parsing = {};
  std::vector<std::string> markers = {};  // of the dialect: their special tokens are kept as text
  std::function<std::string()> draw_call_id = {};  // for calls without an id of the model's own
  Channel first_channel = Channel::kText;
  bool logprobs = false;
  uint32_t prompt_tokens = 0;
  bool is_bound = false;    // a grammar holds its form, which is whole only where the model ends it
  bool ends_whole = false;  // … and it can end nowhere else, not in a thought either
  bool only_calls = false;  // beside thinking: what is no call yet at the limit begins one

  GuardSettings guards = {};
  std::vector<text::TokenId> thinking_close = {};  // empty: thinking cannot be closed for the model
  std::vector<gen::LogitBias> thinking_bias = {};  // of what is drawn inside thinking
  uint32_t max_tokens = 0;                         // of the answer; what is put in counts
  std::vector<Guard> acted = {};                   // before the answer began
};

/// Thinking, text and calls are told apart by the dialect, whose markers are not delivered; nor are
/// special tokens, stop ids, and whatever follows a stop string. Not thread-safe.
class Answer {
 public:
  explicit Answer(std::shared_ptr<const AnswerRules> rules);

  /// Takes the next event; empty once done. After an End or Failed the answer is done.
  std::vector<EventBody> take(const gen::Event& event);

  bool done() const { return done_; }

  /// All so far, also those that were put in and the stop id, but for those behind the end of the
  /// calls that the answer ended with.
  std::span<const text::TokenId> tokens() const {
    return {tokens_.data(), tokens_.size() - beyond_};
  }

  /// What a generation that goes on with the answer is told besides the request.
  struct Detour {
    std::vector<text::TokenId> tokens;  // all of the answer's so far
    std::vector<gen::LogitBias> bias;   // see bias()
  };

  /// The answer goes on with other tokens than those that the generator drew, or with another bias:
  /// then from what this says. The generation before is of no use any more. Once.
  std::optional<Detour> take_detour();

  /// What the next token is to be drawn with, besides the request's own bias.
  std::vector<gen::LogitBias> bias() const;

 private:
  /// A drawn token whose text is not yet delivered.
  struct Drawn {
    size_t begin;               // of its text, in bytes since the start of the answer
    std::optional<size_t> end;  // unset while its last character is incomplete
    std::optional<LogprobEntry> logprob;
  };

  void draw(const gen::Token& token, std::vector<EventBody>& out);
  void add(text::TokenId id, std::optional<LogprobEntry> logprob, std::vector<EventBody>& out);
  void append_text(text::TokenId id, std::vector<EventBody>& out);
  void guard(std::vector<EventBody>& out);
  bool is_thinking() const;
  bool is_budget_spent() const;
  bool is_unclosed(const gen::Finished& finished) const;
  bool can_close_thinking() const;
  void close_thinking(Guard why, std::vector<EventBody>& out);
  bool wants_bias() const;
  void follow_thinking();
  void stop_repeating(std::vector<EventBody>& out);
  void note(Guard guard);
  void parse(const StopFinder::Found& found, std::vector<EventBody>& out);
  void deliver(const std::vector<dialect::Event>& events, std::vector<EventBody>& out);
  void deliver_text(const dialect::Event& event, std::vector<EventBody>& out);
  void drop_tokens(const dialect::Event& event, std::vector<EventBody>& out);
  void deliver_call(const dialect::Event& event, std::vector<EventBody>& out);
  void flush(bool cut_off, std::vector<EventBody>& out);
  void finish(bool cut_off, std::vector<EventBody>& out);
  void leave_out_text(std::vector<dialect::Event>& events);
  void end(FinishReason reason, std::string stop_text, std::vector<EventBody>& out);
  void fail(Error error, std::vector<EventBody>& out);
  FinishReason own_end() const;
  bool is_stop_id(text::TokenId id) const;
  bool is_hidden(text::TokenId id) const;
  LogprobEntry logprob_of(const gen::Token& token) const;
  std::vector<LogprobEntry> pop(size_t count, Channel channel);

  std::shared_ptr<const AnswerRules> rules_;
  text::Detokenizer detokenizer_;
  StopFinder stops_;
  dialect::Parser parser_;
  std::deque<Drawn> drawn_;
  std::vector<text::TokenId> tokens_;  // of the answer, also those that were put in
  RepeatedSpan repeats_;
  size_t beyond_ = 0;  // of these, behind the answer's end
  size_t said_ = 0;    // bytes of the answer's text that events were made of
  std::vector<Guard> acted_;
  uint32_t detours_ = 0;
  uint32_t thoughts_ = 0;  // that began inside the answer
  bool is_biased_ = false;
  bool on_detour_ = false;                 // until take_detour()
  size_t decoded_ = 0;                     // bytes of the answer's text so far
  Channel last_channel_ = Channel::kText;  // of delivered text
  bool has_text_ = false;
  uint32_t whole_calls_ = 0;
  uint32_t misfits_ = 0;
  bool cut_in_call_ = false;
  std::optional<uint32_t> cached_tokens_;
  Usage usage_;
  bool done_ = false;
};

}  // namespace tandem::chat
