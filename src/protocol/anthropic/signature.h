// What a thinking block is signed with.
#pragma once

#include <string>
#include <string_view>

namespace tandem::protocol::anthropic {

/// HMAC-SHA256 of the thought under the server's key, in hex. It says that a server with this key
/// wrote exactly this thought. Nothing depends on it: thoughts that come back are text, and are
/// kept whether their signature is ours, another server's or empty, as clients write it that had
/// none. But a block must have one, since some clients turn thoughts without it into words of the
/// assistant.
std::string sign_thinking(std::string_view key, std::string_view thinking);

}  // namespace tandem::protocol::anthropic
