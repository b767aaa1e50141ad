// What clients hold of a turn: its id under the server's key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::replay {

/// A handle on the turn of this id, for clients with this salt. It says nothing about the turn.
/// HMAC-SHA256 binds id and salt to the key.
std::string seal(std::string_view key, std::string_view salt, std::string_view id);

/// The id of a handle that was sealed with this key and salt. Nothing for all other text.
std::optional<std::string> unseal(std::string_view key,
                                  std::string_view salt,
                                  std::string_view handle);

}  // namespace tandem::replay
