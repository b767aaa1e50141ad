#include "app/state_options.h"

#include <doctest/doctest.h>

#include "base/environment_test.h"
#include "store/folder_test.h"

namespace tandem::app {
namespace {

TEST_CASE("state options: the folder is the named one, the user's, or none") {
  CHECK(state_folder("/x/y") == "/x/y");
  {
    const TestVariable state("XDG_STATE_HOME", "/state");
    CHECK(state_folder("") == "/state/tandem");
  }
  const TestVariable no_state("XDG_STATE_HOME", nullptr);
  const TestVariable home("HOME", "/home/me");
  CHECK(state_folder("") == "/home/me/.local/state/tandem");
}

TEST_CASE(
    "state options: a named folder that cannot be used is an error, the default one a warning") {
  const auto refused = open_state({.folder = "/proc/tandem-state"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("/proc/tandem-state") != std::string::npos);
  const TestVariable state("XDG_STATE_HOME", "/proc");
  const auto without = open_state({});
  REQUIRE(without);
  CHECK(*without == nullptr);
  CHECK(open_state({.none = true}).value() == nullptr);
}

TEST_CASE("state options: a folder that is not there is made") {
  const store::TestFolder folder;
  const auto opened = open_state({.folder = folder.state()});
  REQUIRE(opened);
  CHECK(std::filesystem::exists((*opened)->database().file()));
}

TEST_CASE("state options: bounds are in megabytes and days") {
  const store::Limits limits = state_limits({.max_mb = 3, .max_age_days = 2});
  CHECK(limits.max_bytes == 3 << 20);
  CHECK(limits.max_age == std::chrono::hours(48));
}

}  // namespace
}  // namespace tandem::app
