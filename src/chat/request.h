// What a protocol asks of the model: a conversation or a prompt, how to draw, when to stop. No wire
// format.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chat/guards.h"
#include "gen/request.h"

namespace tandem::chat {

using Json = nlohmann::ordered_json;

/// In a message of the assistant: what a client was given to name the turn by (replay/handle.h).
/// Templates do not see it.
inline constexpr const char* kTurnHandle = "turn_handle";

/// What an answer's text must be; thinking may come before it.
struct AnswerForm {
  enum class Kind : uint8_t { kAny, kJsonSchema, kRegex, kChoice, kLark };

  Kind kind = Kind::kAny;
  Json schema = nullptr;                  // of kJsonSchema
  std::string source = {};                // of kRegex and kLark
  std::vector<std::string> choices = {};  // of kChoice
  std::string field = {};                 // of the request, for errors

  bool operator==(const AnswerForm&) const = default;
};

/// Which calls an answer may or must have.
struct CallRule {
  bool is_required = false;
  std::vector<std::string> only = {};  // tools; empty: all. Not empty only where one is required
  std::string field = {};              // of the request, for errors

  bool operator==(const CallRule&) const = default;
};

/// What the one text that a tool takes must be.
struct TextRule {
  std::string pattern;  // a regular expression that matches all of it
  std::string field;    // of the request, for errors

  bool operator==(const TextRule&) const = default;
};

/// In the schema of a tool that takes one text: its member.
inline constexpr const char* kTextInput = "input";

/// Messages as the chat template sees them: [{role, content: string, tool_calls?,
/// reasoning_content?, …}], tool-call arguments already parsed to objects, null content already "".
struct Conversation {
  Json messages = Json::array();
  Json tools = nullptr;                      // null when none
  Json template_arguments = Json::object();  // chat_template_kwargs, such as enable_thinking
  bool continues_last_message = false;       // the answer continues a final assistant message
  bool parallel_calls = true;                // several tool calls in one answer
  CallRule calls = {};
  std::map<std::string, TextRule> text_rules = {};  // by tool; templates do not see them

  bool operator==(const Conversation&) const = default;
};

/// A prompt without a template: text (encoded with the tokenizer's default special tokens) or ids.
struct RawPrompt {
  std::variant<std::string, std::vector<gen::TokenId>> prompt;

  bool operator==(const RawPrompt&) const = default;
};

struct Request {
  std::string id;      // public name, such as "chatcmpl-…"; unique among running requests
  std::string client;  // see gen::Request
  std::string salt;
  std::variant<Conversation, RawPrompt> input;
  gen::Sampling sampling;        // seed and choice are filled in by the service
  std::optional<uint64_t> seed;  // unset: a fresh one
  uint32_t choices = 1;
  std::optional<uint32_t> max_tokens;  // unset: the default, at most what the context leaves
  uint32_t min_tokens = 0;
  std::vector<std::string> stop;  // matched on decoded text, cut out of the answer
  bool ignore_eos = false;
  std::optional<uint32_t> logprobs;
  gen::Priority priority = gen::Priority::kNormal;
  std::optional<std::chrono::milliseconds> deadline;
  GuardSettings guards;       // of conversations; raw prompts are left alone
  uint32_t index_reuse = 0;   // see gen::Request
  AnswerForm form = {};       // with tools, calls stay possible
  bool gives_handle = false;  // with thinking goes a handle on the answer (kTurnHandle)

  bool operator==(const Request&) const = default;
};

}  // namespace tandem::chat
