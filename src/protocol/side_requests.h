// Requests that clients make beside the work: titles, topics, probes. They run low, so that no page
// of an agent's session goes for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/request.h"
#include "protocol/wire_request.h"

namespace tandem::protocol {

/// What tells one kind of them. All that is said must hold.
struct SideRule {
  const char* kind = "";        // in metrics and lists of requests
  const char* client = "";      // is in User-Agent or originator
  const char* endpoint = "";    // of the wire
  uint32_t most_tokens = 0;     // max_tokens is given, and at most this
  uint32_t most_messages = 0;   // besides system messages
  bool may_have_tools = false;  // others have none
  /// One of the first is in a system message, or one of the others in the last user message.
  std::vector<std::string> in_system = {};
  std::vector<std::string> in_user = {};
};

/// In the order in which they are tried.
const std::vector<SideRule>& side_rules();

/// The kind of side request that this is; empty when it is none.
std::string side_kind(std::string_view endpoint,
                      const net::Request& request,
                      const WireRequest& wire);

}  // namespace tandem::protocol
