// Meeting: brings up an authenticated socket to each rank that one side dials and the other
// accepts.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/auth.h"
#include "comm/socket.h"

namespace tandem::comm {

/// A rank to dial, and where.
struct Dial {
  uint32_t rank = 0;
  Address address;
  std::string where;  // for messages
};

struct Meeting {
  Hello self;
  std::span<const std::byte> secret;
  const Fd* listener = nullptr;   // none if nobody is to be accepted
  std::vector<uint32_t> accepts;  // the ranks that dial us
  std::vector<Dial> dials;
  TimePoint until;
};

/// Dials and accepts at once until every rank is there. A refused or silent connection holds up no
/// other; a dialled rank that is not there yet, or refuses, is tried again until the time is up.
/// Returns one socket a rank.
Result<std::map<uint32_t, Fd>> meet(const Meeting& meeting);

}  // namespace tandem::comm
