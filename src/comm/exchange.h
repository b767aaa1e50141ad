// Exchange: one message to and one from each of several peers at once, in any sizes, without
// deadlock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/fabric.h"
#include "comm/tag.h"

namespace tandem::comm {

/// What goes to one peer and comes from it during an exchange.
struct Flow {
  uint32_t peer = 0;

  bool sends = false;
  Tag out_tag = {};                     // filled but for epoch and sequence
  std::span<const std::byte> out = {};  // the whole message
  size_t sent = 0;                      // with the tag
  size_t need_out = 0;                  // drive() returns only when so much of `out` is away

  bool receives = false;
  Tag in_tag = {};               // what must come
  std::span<std::byte> in = {};  // receives the next part of the message
  size_t in_begin = 0;           // where in the message `in` begins; drive() fills it whole
  size_t received = 0;           // with the tag
  Tag got = {};
  bool lost = false;

  bool out_done() const { return !sends || sent >= sizeof(Tag) + need_out; }
  bool out_complete() const { return !sends || sent == sizeof(Tag) + out.size(); }
  bool in_done() const { return !receives || received >= sizeof(Tag) + in_begin + in.size(); }
};

class Exchange {
 public:
  Exchange(Fabric& fabric, uint32_t context, std::chrono::milliseconds deadline)
      : fabric_(fabric), context_(context), deadline_(deadline) {}

  /// Adds a peer. Its tags get this group's epoch and context and the link's next sequence.
  Flow& add(Flow flow);
  std::span<Flow> flows() { return flows_; }

  /// Moves bytes until every flow has what it needs. Sends go on beyond that as far as there is
  /// room. May be called again after moving `in` and `need_out` on. An error is final.
  Status drive();

 private:
  struct Pass {
    bool moved = false;
    bool done = true;
  };
  Result<Pass> pass();
  Result<bool> push(Flow& flow);
  Result<bool> pull(Flow& flow);
  Status check(const Flow& flow) const;
  Status outside() const;
  std::optional<Error> give_up(TimePoint now, TimePoint last_move);
  void sleep(uint32_t ticket, TimePoint until);
  Error lost(uint32_t peer, const char* why) const;

  Fabric& fabric_;
  uint32_t context_;
  std::chrono::milliseconds deadline_;
  SteadyClock clock_;
  std::vector<Flow> flows_;
  std::vector<Interest> interests_;
  std::optional<TimePoint> lost_at_;
};

}  // namespace tandem::comm
