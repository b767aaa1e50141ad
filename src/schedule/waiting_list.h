// WaitingList: whose turn it is to be admitted.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "schedule/sequence.h"

namespace tandem::schedule {

/// Clients by index, with the turns they had. An index lives as long as a request of its client.
class Clients {
 public:
  struct Client {
    std::string name;
    uint32_t requests = 0;
    uint64_t last_admission = 0;
    uint64_t last_prefill = 0;
  };

  uint32_t enter(const std::string& name);
  void leave(uint32_t index);
  Client& operator[](uint32_t index) { return clients_[index]; }
  const Client& operator[](uint32_t index) const { return clients_[index]; }

 private:
  std::vector<Client> clients_;
  std::vector<uint32_t> unused_;
  std::unordered_map<std::string, uint32_t> by_name_;
};

/// Sequences that are not running. Borrowed: each must be removed before it dies. One thread.
class WaitingList {
 public:
  void add(Sequence& sequence) { sequences_.push_back(&sequence); }
  void remove(const Sequence& sequence);

  /// Who is next: paused ones, and those whose answer goes on, before new ones; low priority only
  /// when no other waits, unless it has waited longer than `patience`; between clients the one
  /// whose last turn is longest ago; then by arrival. Null when empty.
  Sequence* next(const Clients& clients, TimePoint now, Duration patience) const;

  size_t size() const { return sequences_.size(); }
  /// Of those, the ones that ran before.
  size_t paused() const;

 private:
  std::vector<Sequence*> sequences_;  // in order of add()
};

}  // namespace tandem::schedule
