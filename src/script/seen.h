// What a script's rules look at in a request.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "chat/request.h"
#include "dialect/tools.h"

namespace tandem::script {

/// Places that regular expressions search.
enum class Place : uint8_t { kUser, kLast, kResult, kSystem };
inline constexpr std::array kPlaces = {Place::kUser, Place::kLast, Place::kResult, Place::kSystem};

const char* name(Place place);
std::optional<Place> place_named(std::string_view name);

struct Seen {
  explicit Seen(const chat::Request& request);

  /// user: all that the user said, in lines. last: the last message, or a raw prompt. result: the
  /// last tool result. system: all system and developer messages. Empty when there is none.
  const std::string& text(Place place) const { return texts[static_cast<size_t>(place)]; }

  /// "name", or "name.parameter" for a tool whose schema has that parameter.
  bool offers(std::string_view tool) const;

  std::array<std::string, kPlaces.size()> texts;
  size_t results = 0;  // tool results so far
  dialect::Tools tools;
};

}  // namespace tandem::script
