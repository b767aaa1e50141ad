#include "replay/memory.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace tandem::replay {
namespace {

Turn turn_of(const std::string& text, size_t tokens = 4) {
  Turn turn;
  turn.id = "id of " + text;
  turn.text = text;
  turn.tokens.assign(tokens, 7);
  return turn;
}

/// A disk that several memories see one after another.
using Disk = std::map<std::string, std::string>;

class DiskBacking final : public Backing {
 public:
  explicit DiskBacking(Disk& disk) : disk_(disk) {}
  void put(const std::string& owner, const std::string& key, std::string value, int64_t) override {
    disk_[owner + "/" + key] = std::move(value);
  }
  std::optional<std::string> get(const std::string& owner, const std::string& key) override {
    const auto found = disk_.find(owner + "/" + key);
    return found == disk_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  Disk& disk_;
};

}  // namespace

TEST_CASE("memory: a turn is found under each of its keys, by its owner alone") {
  ManualClock clock;
  Memory memory({}, clock);
  memory.remember("a", turn_of("x"), {"k1", "k2"}, true);
  for (const char* key : {"k1", "k2"}) {
    REQUIRE(memory.find("a", key));
    CHECK(*memory.find("a", key) == turn_of("x"));
    CHECK_FALSE(memory.find("b", key));
  }
  CHECK_FALSE(memory.find("a", "k3"));
  // A name is owner and key, wherever one ends.
  CHECK_FALSE(memory.find("ak", "1"));
}

TEST_CASE("memory: a later turn takes the place of an earlier one under a shared key") {
  ManualClock clock;
  Memory memory({.max_turns = 2}, clock);
  memory.remember("a", turn_of("x"), {"k1", "shared"}, true);
  memory.remember("a", turn_of("y"), {"k2", "shared"}, true);
  CHECK(memory.find("a", "shared")->text == "y");
  CHECK(memory.find("a", "k1")->text == "x");
  CHECK(memory.find("a", "k2")->text == "y");
  // The earlier one goes and leaves the key alone.
  memory.remember("a", turn_of("z"), {"k3"}, true);
  CHECK_FALSE(memory.find("a", "k1"));
  CHECK(memory.find("a", "shared")->text == "y");
}

TEST_CASE("memory: bounds hold, and the least recently used goes first") {
  ManualClock clock;
  Memory memory({.max_bytes = 20'000, .max_turns = 8}, clock);
  for (int i = 0; i < 50; ++i) {
    memory.remember("a", turn_of(std::to_string(i), 600), {std::to_string(i)}, true);
    memory.find("a", "0");
    CHECK(memory.bytes() <= 20'000);
    CHECK(memory.turns() <= 8);
  }
  CHECK(memory.find("a", "0"));
  CHECK(memory.find("a", "49"));
  CHECK_FALSE(memory.find("a", "1"));
  memory.remember("a", turn_of("large", 10'000), {"large"}, true);
  CHECK_FALSE(memory.find("a", "large"));
  CHECK(memory.find("a", "49"));
}

TEST_CASE("memory: a turn is forgotten at its age, however often it is used") {
  ManualClock clock;
  Memory memory({.max_age = std::chrono::seconds(10)}, clock);
  memory.remember("a", turn_of("x"), {"k"}, true);
  for (int i = 0; i < 10; ++i) {
    CHECK(memory.find("a", "k"));
    clock.advance(std::chrono::seconds(1));
  }
  clock.advance(std::chrono::nanoseconds(1));
  CHECK_FALSE(memory.find("a", "k"));
  CHECK(memory.turns() == 0);
  CHECK(memory.bytes() == 0);
}

TEST_CASE("memory: what is behind it outlives it, for the same owner") {
  ManualClock clock;
  Disk disk;
  Turn turn = turn_of("x");
  turn.calls = {{.id = "c", .name = "ls", .arguments = "{}"}};
  turn.frame = "\n";
  turn.opening = "<think>\n";
  turn.thinking = "hm";
  turn.before[3] = 9;
  turn.run_bytes = 77;
  turn.began = unix_microseconds();
  Memory({}, clock, std::make_unique<DiskBacking>(disk)).remember("a", turn, {"k1", "k2"}, true);
  Memory later({}, clock, std::make_unique<DiskBacking>(disk));
  CHECK_FALSE(later.find("b", "k2"));
  REQUIRE(later.find("a", "k2"));
  CHECK(*later.find("a", "k2") == turn);
  CHECK(*later.find("a", "k1") == turn);
  disk.clear();
  CHECK(later.find("a", "k2"));  // kept here again
}

TEST_CASE("memory: a turn does not become younger where it is read again") {
  ManualClock clock;
  Disk disk;
  int64_t now = 1'000'000'000;
  const auto memory = [&] {
    return std::make_unique<Memory>(MemoryLimits{.max_age = std::chrono::seconds(10)}, clock,
                                    std::make_unique<DiskBacking>(disk), [&now] { return now; });
  };
  const auto pass = [&](int seconds) {
    now += int64_t{seconds} * 1'000'000;
    clock.advance(std::chrono::seconds(seconds));
  };
  Turn turn = turn_of("x");
  turn.began = now;
  pass(2);  // while it is made
  memory()->remember("a", turn, {"k"}, true);
  pass(4);
  const auto later = memory();
  CHECK(later->find("a", "k"));
  pass(4);
  CHECK(later->find("a", "k"));
  pass(1);
  CHECK_FALSE(later->find("a", "k"));
  CHECK_FALSE(memory()->find("a", "k"));
}

TEST_CASE("memory: only what is to outlive it is left to what is behind it") {
  ManualClock clock;
  Disk disk;
  Memory memory({}, clock, std::make_unique<DiskBacking>(disk));
  memory.remember("a", turn_of("x"), {"k1", "k2"}, false);
  CHECK(disk.empty());
  CHECK(memory.find("a", "k2"));
}

TEST_CASE("memory: bytes that are no turn are none") {
  ManualClock clock;
  Disk disk;
  Memory({}, clock, std::make_unique<DiskBacking>(disk))
      .remember("a", turn_of("x"), {"k1", "k2"}, true);
  const std::string whole = disk["a/k1"];
  for (size_t size = 0; size < whole.size(); ++size) {
    disk["a/k1"] = whole.substr(0, size);
    CHECK_FALSE(Memory({}, clock, std::make_unique<DiskBacking>(disk)).find("a", "k2"));
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    disk["a/k1"] = whole;
    disk["a/k1"][i] = static_cast<char>(disk["a/k1"][i] ^ 0x41);
    Memory({}, clock, std::make_unique<DiskBacking>(disk)).find("a", "k2");  // and no crash
  }
  disk["a/k1"] = "=k2";
  CHECK_FALSE(Memory({}, clock, std::make_unique<DiskBacking>(disk)).find("a", "k2"));
}

}  // namespace tandem::replay
