#include "control/departures.h"

#include <algorithm>
#include <utility>

namespace tandem::control {

void Departures::link_closed(Incarnation who, Error why, TimePoint now) {
  departure(who, now).link = std::move(why);
}

void Departures::exited(Incarnation who, std::string how, bool has_link, TimePoint now) {
  Departure& it = departure(who, now);
  it.exit = std::move(how);
  it.has_link = has_link;
}

std::vector<Departures::News> Departures::settle(TimePoint now) {
  std::vector<News> news;
  for (Departure& it : departures_) {
    const Duration age = now - it.since;
    if (it.exit && (!it.has_link || it.link || age >= kLinkAfterExit)) {
      news.push_back({.who = it.who, .exit = std::move(it.exit), .link = std::nullopt});
    } else if (it.link && !it.exit && !it.link_told && age >= kExitAfterLink) {
      it.link_told = true;
      news.push_back({.who = it.who, .exit = std::nullopt, .link = it.link});
    }
  }
  for (const News& told : news) {
    if (!told.exit) continue;
    std::erase_if(departures_, [&](const Departure& it) { return it.who == told.who; });
  }
  return news;
}

Departures::Departure& Departures::departure(Incarnation who, TimePoint now) {
  const auto it = std::find_if(departures_.begin(), departures_.end(),
                               [&](const Departure& other) { return other.who == who; });
  if (it != departures_.end()) return *it;
  Departure& added = departures_.emplace_back();
  added.who = who;
  added.since = now;
  return added;
}

}  // namespace tandem::control
