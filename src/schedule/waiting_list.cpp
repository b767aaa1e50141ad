#include "schedule/waiting_list.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace tandem::schedule {

uint32_t Clients::enter(const std::string& name) {
  auto [found, is_new] = by_name_.try_emplace(name, 0);
  if (is_new) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<uint32_t>(clients_.size()));
      clients_.emplace_back();
    }
    found->second = unused_.back();
    unused_.pop_back();
    clients_[found->second] = {.name = name};
  }
  ++clients_[found->second].requests;
  return found->second;
}

void Clients::leave(uint32_t index) {
  TANDEM_CHECK(clients_[index].requests > 0);
  if (--clients_[index].requests > 0) return;
  by_name_.erase(clients_[index].name);
  unused_.push_back(index);
}

void WaitingList::remove(const Sequence& sequence) { std::erase(sequences_, &sequence); }

size_t WaitingList::paused() const {
  return static_cast<size_t>(std::count_if(sequences_.begin(), sequences_.end(),
                                           [](const Sequence* at) { return at->order != 0; }));
}

Sequence* WaitingList::next(const Clients& clients, TimePoint now, Duration patience) const {
  const auto rank = [&](const Sequence& at) {
    const bool low = at.priority() == gen::Priority::kLow && now - at.arrival <= patience;
    const bool is_new = at.order == 0 && !at.goes_on;
    return std::tuple(low, is_new, is_new ? clients[at.client].last_admission : at.order,
                      at.serial);
  };
  const auto least =
      std::min_element(sequences_.begin(), sequences_.end(),
                       [&](const Sequence* a, const Sequence* b) { return rank(*a) < rank(*b); });
  return least == sequences_.end() ? nullptr : *least;
}

}  // namespace tandem::schedule
