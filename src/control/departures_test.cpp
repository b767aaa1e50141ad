#include "control/departures.h"

#include <doctest/doctest.h>

namespace tandem::control {
namespace {

using namespace std::chrono_literals;

const Incarnation kWho{.rank = 2, .number = 5};
const Error kClosed{ErrorCode::kPeerLost, "closed"};
const TimePoint kStart{};

TEST_CASE("departures: an exit waits for the last words on an open link, but not for ever") {
  Departures departures;
  departures.exited(kWho, "died", true, kStart);
  CHECK(departures.settle(kStart).empty());
  departures.link_closed(kWho, kClosed, kStart + 5ms);
  const auto news = departures.settle(kStart + 5ms);
  REQUIRE(news.size() == 1);
  CHECK(news[0].who == kWho);
  CHECK(news[0].exit == "died");
  CHECK(departures.settle(kStart + 10s).empty());

  departures.exited(kWho, "died", true, kStart);
  CHECK(departures.settle(kStart + 299ms).empty());
  CHECK(departures.settle(kStart + 300ms).size() == 1);
}

TEST_CASE("departures: an exit without a link is told at once") {
  Departures departures;
  departures.exited(kWho, "died", false, kStart);
  CHECK(departures.settle(kStart).size() == 1);
}

TEST_CASE("departures: a closed link waits a little for its reason, then both are told apart") {
  Departures departures;
  departures.link_closed(kWho, kClosed, kStart);
  CHECK(departures.settle(kStart + 99ms).empty());
  const auto link = departures.settle(kStart + 100ms);
  REQUIRE(link.size() == 1);
  CHECK(link[0].link == kClosed);
  CHECK(!link[0].exit.has_value());
  CHECK(departures.settle(kStart + 200ms).empty());
  departures.exited(kWho, "died", true, kStart + 1s);
  CHECK(departures.settle(kStart + 1s).size() == 1);
}

}  // namespace
}  // namespace tandem::control
