// chat::Service: template → tokens → generator → text → events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/divergence.h"
#include "chat/embedding.h"
#include "chat/event.h"
#include "chat/request.h"

namespace tandem::chat {

/// Receives a request's events: in order within a choice, on the generator's thread. Must not block
/// or throw.
using Sink = std::function<void(Event)>;

/// What a protocol tells clients about the model.
struct ModelInfo {
  std::string id;
  uint32_t max_context = 0;     // tokens a request may have here
  uint32_t native_context = 0;  // tokens the checkpoint was made for
  uint32_t max_output = 0;
  uint32_t vocab = 0;   // token ids are below this
  int64_t created = 0;  // Unix seconds
  bool has_chat_template = false;
  bool can_think = false;      // thinking is told apart from text
  std::string family = {};     // "model_type" of the checkpoint
  std::string container = {};  // of its files: "safetensors" or "gguf"
  uint64_t weight_bytes = 0;
};

/// What of a request has no effect here.
struct Warning {
  std::string code;  // one of few, such as "tools_not_in_template": for metrics
  std::string message;

  bool operator==(const Warning&) const = default;
};

/// A request that was taken.
struct Accepted {
  uint32_t prompt_tokens = 0;
  std::optional<Divergence> divergence = {};  // unset: it goes on with a known prompt, or none is
};

/// Serves one model. Thread-safe.
class Service {
 public:
  virtual ~Service() = default;

  virtual ModelInfo model() const = 0;

  /// Renders, encodes and submits. Refused (no event follows):
  /// kInvalid (template's own message, bad ids), kTooLarge with field "messages" or "prompt" (names
  /// prompt and context sizes), kBusy, kUnavailable, kConflict (id in use). Accepted: exactly one
  /// last event for each choice.
  virtual Result<Accepted> submit(Request request, Sink sink) = 0;

  /// How many tokens submit() would make of the prompt, also where it is too long. Other errors are
  /// those of submit().
  virtual Result<uint32_t> count_prompt(const Request& request) const = 0;

  /// The conversation as the text of a prompt. Errors are those of submit().
  virtual Result<std::string> render(const Conversation& conversation) const = 0;

  /// The text's token ids, with what the tokenizer puts around it when `add_special`. kInvalid when
  /// it is not UTF-8.
  virtual Result<std::vector<gen::TokenId>> encode(std::string_view text,
                                                   bool add_special) const = 0;

  /// The bytes that each id stands for, perhaps part of a character; special tokens as they are
  /// spelled. kInvalid, field "tokens", for an id outside of the vocabulary.
  virtual Result<std::vector<std::string>> token_bytes(
      const std::vector<gen::TokenId>& ids) const = 0;

  /// The text of all the ids, with U+FFFD for bytes that are no character. Errors as above.
  virtual Result<std::string> decode(const std::vector<gen::TokenId>& ids) const = 0;

  /// What the model's template does not read of a conversation: tools, template arguments.
  virtual std::vector<Warning> warnings(const Request& request) const = 0;

  /// Encodes all inputs and submits them a few at a time. Returns the number of their tokens.
  /// Refused (no event follows): kInvalid, field "input" or "input[i]" (nothing in it, bad ids) or
  /// "dimensions"; kTooLarge, the same field (names both sizes); kUnavailable, kConflict. Accepted:
  /// exactly one last event follows.
  virtual Result<uint64_t> embed(EmbeddingRequest request, EmbeddingSink sink) = 0;

  /// Ends every choice with Failed{kCancelled}, or an embedding. False when no such request runs.
  virtual bool cancel(const std::string& id) = 0;
};

}  // namespace tandem::chat
