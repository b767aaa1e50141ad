// One answer of the model as it was drawn, and as its client saw it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dialect/tools.h"
#include "gen/request.h"
#include "replay/digest.h"

namespace tandem::replay {

using Json = nlohmann::ordered_json;

struct TurnCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON, as it was delivered

  bool operator==(const TurnCall&) const = default;
};

struct Turn {
  std::string id;  // public name of its request; of a further choice with "#" and its number
  /// Of the prompt it was drawn from, but for `frame` and `opening`: its text, and the turns
  /// replayed in it.
  Digest::Value before{};
  uint64_t run_bytes = 0;            // of that text behind the last of those turns
  std::string frame;                 // what the template wrote behind the last message
  std::string opening;               // what the prompt opened for it, such as "<think>\n"
  std::vector<gen::TokenId> tokens;  // drawn, without the end-of-text token
  std::string thinking;
  std::string text;
  std::vector<TurnCall> calls;
  int64_t began = 0;  // when its request came, in microseconds of Unix time; 0: now

  /// Memory that it takes, about.
  size_t bytes() const;

  bool operator==(const Turn&) const = default;
};

/// The turn as bytes, for a store, and back; nothing when they are no turn.
std::string encode(const Turn& turn);
std::optional<Turn> decode(std::string_view bytes);

/// The message that a client would have of it.
Json message_of(const Turn& turn);

/// True when a message of the assistant says what the turn said, whatever clients do to what comes
/// back: text and thinking trimmed, thinking left out, arguments written anew with their keys in
/// another order and the schema's defaults filled in. Call ids that are given must be the turn's.
bool is_echo(const Turn& turn, const Json& message, const dialect::Tools& tools);

}  // namespace tandem::replay
