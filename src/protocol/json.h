// JSON from clients, bounded in depth and number before it costs memory.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tandem::protocol {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  size_t depth = 100;
  size_t values = 2'000'000;        // of the whole text
  size_t members_of_object = 2048;  // lookups in an ordered object are linear
};

/// kInvalid, with the place, for what is not JSON or exceeds a limit.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

/// Compact; bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& json);

/// The string of an object under a name; empty where there is none.
std::string string_in(const Json& object, const char* name);

/// A value as part of an error message: at most 60 bytes.
std::string excerpt(const Json& json);

/// `text` as a JSON string, quotes included.
std::string literal(std::string_view text);

/// At most `limit` bytes of text, cut between characters, with "…" when cut.
std::string shortened(std::string_view text, size_t limit);

/// `bytes` with everything that is not UTF-8 replaced by U+FFFD.
std::string lossy_utf8(std::string_view bytes);

}  // namespace tandem::protocol
