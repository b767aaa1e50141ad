// Tells a conversation in which the model makes the same call with the same result again and again.
#pragma once

#include <cstdint>

#include "chat/request.h"

namespace tandem::chat {

/// From how many on it is a loop.
inline constexpr uint32_t kLoopingCalls = 3;

/// How many of the last calls, with their results, are the same: name, arguments (whatever the
/// order of keys) and result (but for white space at its ends). Only calls since the user last
/// spoke count; the words that steer() adds, and texts that are nothing but <system-reminder>
/// elements, are not the user's. Calls without a result end the count.
uint32_t looping_calls(const Json& messages);

/// The messages with one more that tells the model so.
Json steered(Json messages, uint32_t calls);

/// Calls of the request's history that are the same, where the request wants to know; 0: too few to
/// be a loop.
uint32_t loop_of(const Request& request);

}  // namespace tandem::chat
