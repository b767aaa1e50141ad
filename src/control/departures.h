// Brings together the two signs of a rank's end, its closed link and its exit, which come in any
// order: so that its last words are heard first and its end is told with its reason.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "control/instance.h"

namespace tandem::control {

/// Pure. One thread.
class Departures {
 public:
  static constexpr Duration kExitAfterLink = std::chrono::milliseconds(100);
  static constexpr Duration kLinkAfterExit = std::chrono::milliseconds(300);

  /// What is to be told now: an exit, or a closed link whose process goes on.
  struct News {
    Incarnation who;
    std::optional<std::string> exit;
    std::optional<Error> link;
  };

  void link_closed(Incarnation who, Error why, TimePoint now);
  /// has_link: its link is open, so that words may still be on the way.
  void exited(Incarnation who, std::string how, bool has_link, TimePoint now);

  std::vector<News> settle(TimePoint now);

 private:
  struct Departure {
    Incarnation who;
    TimePoint since{};
    bool has_link = false;
    bool link_told = false;
    std::optional<Error> link;
    std::optional<std::string> exit;
  };

  Departure& departure(Incarnation who, TimePoint now);

  std::vector<Departure> departures_;
};

}  // namespace tandem::control
