#include "app/replay_options.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "store/folder_test.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

fs::path folder_in(const store::TestFolder& folder) {
  fs::create_directories(folder.state());
  return folder.state();
}

}  // namespace

TEST_CASE("handle key: made once, for its user alone, and read again") {
  const store::TestFolder folder;
  const fs::path state = folder_in(folder);
  const auto first = handle_key(state);
  REQUIRE(first);
  CHECK(first->size() == 32);
  CHECK(*handle_key(state) == *first);
  struct stat about{};
  REQUIRE(::stat((state / "replay.key").c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  CHECK(std::distance(fs::directory_iterator(state), fs::directory_iterator()) == 1);
  const store::TestFolder other;
  CHECK(*handle_key(folder_in(other)) != *first);
  CHECK(*handle_key({}) != *handle_key({}));
}

TEST_CASE("handle key: servers that start at once have the same") {
  const store::TestFolder folder;
  const fs::path state = folder_in(folder);
  std::vector<std::string> keys(8);
  std::vector<std::thread> servers;
  for (std::string& key : keys) {
    servers.emplace_back([&key, &state] { key = handle_key(state).value(); });
  }
  for (std::thread& server : servers) server.join();
  for (const std::string& key : keys) CHECK(key == keys[0]);
}

TEST_CASE("handle key: a file that others may read, or that is none, is refused by name") {
  const store::TestFolder folder;
  const fs::path file = folder_in(folder) / "replay.key";
  REQUIRE(handle_key(folder.state()));
  fs::permissions(file, fs::perms::group_read, fs::perm_options::add);
  CHECK(handle_key(folder.state()).error().message.find("chmod 600") != std::string::npos);
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  for (const char* content : {"", "short", "longer than a key of thirty-two bytes"}) {
    std::ofstream(file, std::ios::trunc) << content;
    CHECK(handle_key(folder.state()).error().message.find("remove it") != std::string::npos);
  }
  CHECK(handle_key(folder.state() / "nowhere").error().code == ErrorCode::kIo);
}

TEST_CASE("memory of a server: what has a handle is there after a restart, until it is purged") {
  store::TestFolder folder;
  const SteadyClock clock;
  replay::Turn turn;
  turn.id = "msg_1";
  turn.text = "said";
  turn.tokens = {1, 2};
  for (const bool outlives : {true, false}) {
    auto store = store::Store::open({.folder = folder.state()});
    REQUIRE(store);
    {
      const auto memory = make_memory({}, store->get(), clock);
      memory->remember("a", turn, {outlives ? "kept" : "lost", "alias"}, outlives);
    }
    const auto memory = make_memory({}, store->get(), clock);
    CHECK(memory->find("a", "kept"));
    CHECK_FALSE(memory->find("b", "kept"));
    CHECK_FALSE(memory->find("a", "lost"));
  }
  auto store = store::Store::open({.folder = folder.state()});
  turn.began = store::unix_microseconds();  // its answer is being given
  REQUIRE((*store)->database().purge());
  CHECK_FALSE(make_memory({}, store->get(), clock)->find("a", "kept"));
  make_memory({}, store->get(), clock)->remember("a", turn, {"late", "alias"}, true);
  CHECK_FALSE(make_memory({}, store->get(), clock)->find("a", "late"));
  turn.began = store::unix_microseconds();
  make_memory({}, store->get(), clock)->remember("a", turn, {"later", "alias"}, true);
  CHECK(make_memory({}, store->get(), clock)->find("a", "later"));
  CHECK(make_memory({}, nullptr, clock));
  CHECK_FALSE(make_memory({.none = true}, store->get(), clock));
}

}  // namespace tandem::app
