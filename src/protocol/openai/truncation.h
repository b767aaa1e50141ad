// truncation: "auto": a conversation that is too long loses its oldest part.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "chat/service.h"
#include "protocol/wire_request.h"

namespace tandem::protocol::openai {

/// Messages [from, turn) and [said, answer) are left out.
struct Cut {
  size_t from = 0;
  size_t turn = 0;
  size_t said = 0;
  size_t answer = 0;
};

/// Ways to shorten a conversation, each leaving out more than the one before: the oldest turns (a
/// turn begins with what a user says), then, of the last turn, the oldest answers with the results
/// of their calls. Messages of the system at the beginning stay, and so does what the user said
/// last.
std::vector<Cut> cuts_of(const Json& messages);

/// What a cut leaves; results of calls that go do not stay either.
Json without(const Json& messages, const Cut& cut);

/// Of how many items of input a message was made.
size_t items_in(const Json& message);

/// Prompt tokens of a request; see chat::Service::count_prompt.
using CountTokens = std::function<Result<uint32_t>(const chat::Request&)>;

/// Gives the conversation the longest form that leaves room for an answer, or at least fits, and
/// warns of what was left out. One that fits, or of which no form does, stays as it is.
void truncate_to_fit(const CountTokens& count, uint32_t context, WireRequest& wire);

}  // namespace tandem::protocol::openai
