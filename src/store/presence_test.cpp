#include "store/presence.h"

#include <doctest/doctest.h>

#include <fstream>
#include <optional>

#include "store/folder_test.h"

namespace tandem::store {
namespace {

TEST_CASE("presence: a server lives as long as it says so") {
  TestFolder folder;
  std::filesystem::create_directory(folder.state());
  auto first = std::make_optional(Presence::announce(folder.state()).value());
  const Presence second = Presence::announce(folder.state()).value();
  const std::string id = first->id();
  CHECK(id != second.id());
  CHECK(Presence::is_alive(folder.state(), id));
  first.reset();
  CHECK_FALSE(Presence::is_alive(folder.state(), id));
  CHECK(Presence::is_alive(folder.state(), second.id()));
}

TEST_CASE("presence: files of killed servers say nothing and are cleaned away") {
  TestFolder folder;
  std::filesystem::create_directories(folder.state() / "running");
  const auto left = folder.state() / "running" / "0123456789abcdef";
  std::ofstream(left).close();
  CHECK_FALSE(Presence::is_alive(folder.state(), "0123456789abcdef"));
  const auto announced = Presence::announce(folder.state());
  CHECK(announced);
  CHECK_FALSE(std::filesystem::exists(left));
  CHECK_FALSE(Presence::is_alive(folder.state(), "../state.db"));
}

}  // namespace
}  // namespace tandem::store
