// What a conversation said so far, in a form that what clients do to it does not change.
#pragma once

#include <string>

#include "replay/turn.h"

namespace tandem::replay {

/// Roles, trimmed text, names and ids of calls. Not system texts, which clients write anew, and not
/// thinking and arguments, which they drop and rewrite.
class Lineage {
 public:
  /// Takes the conversation's next message.
  void add(const Json& message);

  /// The key of a turn that says this next.
  std::string key_of(const Json& message) const;

 private:
  Digest::Value said_{};
};

/// The key of a turn by a call in it. For ids that nobody can guess and no other call has.
std::string call_key(std::string_view call_id);

/// The key of a turn by its own id.
std::string turn_key(std::string_view turn_id);

}  // namespace tandem::replay
