// Every way a group can break ends in an error of the right kind on every rank, in time, and leaves
// the process able to form the next group.
#include <doctest/doctest.h>
#include <poll.h>

#include <atomic>

#include "base/clock.h"
#include "comm/ranks_test.h"
#include "comm/transport.h"

namespace tandem::comm {
namespace {

using std::chrono::milliseconds;

int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(SteadyClock().now().time_since_epoch()).count();
}

Status sum(Transport& group, size_t count) {
  std::vector<float> data(count, 1.0F);
  auto status = group.all_sum(data.data(), count, Dtype::kFloat32);
  if (status && count > 0 && data.back() != static_cast<float>(group.size())) {
    return Error{.code = ErrorCode::kInternal, .message = "wrong sum"};
  }
  return status;
}

Status gather(Transport& group, size_t bytes) {
  const std::vector<std::byte> part(bytes);
  std::vector<std::byte> all(bytes * group.size());
  return group.all_gather(part, std::vector(group.size(), bytes), all.data());
}

std::string code_of(const Status& status) { return status ? "ok" : name(status.error().code); }

/// A group that the body breaks, and one of the next epoch that must work afterwards.
struct Twice {
  Twice(Kind kind, uint32_t size) : first(kind, size, 1), second(kind, size, 2) {}

  /// The body's outcome, or what was wrong with the group after it.
  std::string run(uint32_t rank,
                  milliseconds deadline,
                  const std::function<std::string(Transport&)>& body) {
    std::string outcome;
    {
      Options options = first.options(rank);
      options.deadline = deadline;
      auto group = connect(options);
      if (!group) return group.error().message;
      outcome = body(**group);
      const int64_t begin = now_ms();
      const Status again = sum(**group, 4);
      if (again) return "a broken group went on";
      if (now_ms() - begin > 100) return "a broken group made its caller wait";
    }
    auto group = connect(second.options(rank));
    if (!group) return "again: " + group.error().message;
    const Status status = sum(**group, 2048);
    return status ? outcome : "again: " + status.error().message;
  }

  Meetup first;
  Meetup second;
};

/// The outcomes when rank 2 does something else than ranks 0 and 1.
std::string disagree(Kind kind,
                     const std::function<Status(Transport&)>& most,
                     const std::function<Status(Transport&)>& other) {
  Twice twice(kind, 3);
  Ranks ranks(3, [&](uint32_t rank) {
    return twice.run(rank, milliseconds(3000), [&](Transport& group) {
      if (!sum(group, 10)) return std::string("broken before");
      // A send is over once it is buffered: its rank hears of the trouble in its next call.
      Status status = rank == 2 ? other(group) : most(group);
      if (status) status = sum(group, 5);
      return code_of(status);
    });
  });
  return ranks.results();
}

}  // namespace

TEST_CASE("faults: ranks that disagree all report corrupt, none a result") {
  const std::string corrupt = each(3, "corrupt");
  const auto small = [](Transport& group) { return sum(group, 100); };
  const auto large = [](Transport& group) { return sum(group, 200'000); };
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    CHECK(disagree(kind, small, [](Transport& g) { return sum(g, 101); }) == corrupt);
    CHECK(disagree(kind, large, [](Transport& g) { return sum(g, 200'003); }) == corrupt);
    CHECK(disagree(kind, large, [](Transport& g) { return sum(g, 7); }) == corrupt);
    CHECK(disagree(kind, small, [](Transport& g) { return gather(g, 400); }) == corrupt);
    CHECK(disagree(kind, small, [](Transport& g) {
            std::byte data[400];
            return g.recv(data, 0);
          }) == corrupt);
    CHECK(disagree(kind, small, [](Transport& g) {
            const std::byte data[400] = {};
            return g.send(data, 1);
          }) == corrupt);
    CHECK(disagree(kind, small, [](Transport& g) {
            std::vector<uint16_t> data(200);
            return g.all_sum(data.data(), 200, Dtype::kBfloat16);
          }) == corrupt);
  }
}

TEST_CASE("faults: a sub-group's message is not taken for its parent's") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Twice twice(kind, 2);
    Ranks ranks(2, [&](uint32_t rank) {
      return twice.run(rank, milliseconds(3000), [&](Transport& group) {
        auto part = group.split(1, 0);
        if (!part) return part.error().message;
        return code_of(sum(rank == 0 ? group : **part, 100));
      });
    });
    CHECK(ranks.results() == each(2, "corrupt"));
  }
}

TEST_CASE("faults: a killed rank is an error within a second on all others") {
  struct Times {
    std::atomic<int> ready{0};
    std::atomic<int64_t> noticed[3]{};
  };
  for (const Kind kind : kKinds) {
    for (const uint32_t victim : {0U, 2U}) {
      CAPTURE(std::string(name(kind)));
      CAPTURE(victim);
      Board<Times> board;
      Meetup first(kind, 3, 1);
      Meetup second(kind, 2, 2);  // without the one that died
      Ranks ranks(3, [&](uint32_t rank) -> std::string {
        Options options = first.options(rank);
        options.deadline = milliseconds(20'000);
        auto group = connect(options);
        if (!group) return group.error().message;
        if (!sum(**group, 10)) return "broken before";
        ++board->ready;
        if (rank == victim) pause();
        const Status status = sum(**group, 1000);
        board->noticed[rank] = now_ms();
        auto next = connect(second.options(victim == 0 ? rank - 1 : rank));
        if (!next) return next.error().message;
        return sum(**next, 10) ? code_of(status) : "the next group is broken";
      });
      while (board->ready < 3) poll(nullptr, 0, 1);
      const int64_t killed = now_ms();
      ranks.signal(victim, SIGKILL);
      for (uint32_t rank = 0; rank < 3; ++rank) {
        CAPTURE(rank);
        CHECK(ranks.result(rank) == (rank == victim ? "signal 9" : "peer_lost"));
        if (rank != victim) CHECK(board->noticed[rank] - killed < 1000);
      }
    }
  }
}

TEST_CASE("faults: a stopped rank is an error by the deadline, and finds out when it goes on") {
  struct Times {
    std::atomic<int> ready{0};
    std::atomic<int64_t> noticed[3]{};
  };
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Board<Times> board;
    Twice twice(kind, 3);
    Ranks ranks(3, [&](uint32_t rank) {
      return twice.run(rank, milliseconds(400), [&](Transport& group) {
        if (!sum(group, 10)) return std::string("broken before");
        ++board->ready;
        if (rank == 1) raise(SIGSTOP);
        const Status status = sum(group, 50'000);
        board->noticed[rank] = now_ms();
        return code_of(status);
      });
    });
    while (board->ready < 3) poll(nullptr, 0, 1);
    const int64_t stopped = now_ms();
    while (board->noticed[0] == 0 || board->noticed[2] == 0) poll(nullptr, 0, 1);
    ranks.signal(1, SIGCONT);
    CHECK(ranks.result(0) == "deadline");
    CHECK(ranks.result(2) == "deadline");
    const std::string stopped_one = ranks.result(1);
    CHECK((stopped_one == "deadline" || stopped_one == "peer_lost"));
    for (const uint32_t rank : {0U, 2U}) {
      const int64_t took = board->noticed[rank] - stopped;
      CHECK(took >= 300);
      CHECK(took < 1400);
    }
  }
}

TEST_CASE("faults: abort from another thread ends a blocked call at once, on every rank") {
  struct Times {
    std::atomic<int> waiting{0};
    std::atomic<int64_t> aborted{0};
    std::atomic<int64_t> noticed[3]{};
  };
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Board<Times> board;
    Twice twice(kind, 3);
    Ranks ranks(3, [&](uint32_t rank) {
      return twice.run(rank, milliseconds(20'000), [&](Transport& group) {
        std::jthread watchdog;
        if (rank == 0) {
          watchdog = std::jthread([&] {
            while (board->waiting < 3) poll(nullptr, 0, 1);
            poll(nullptr, 0, 50);  // so that the others are most likely asleep
            board->aborted = now_ms();
            group.abort();
          });
        }
        ++board->waiting;
        std::byte data[8];
        const Status status = group.recv(data, (rank + 1) % 3);  // nobody sends
        board->noticed[rank] = now_ms();
        return code_of(status);
      });
    });
    CHECK(ranks.results() == each(3, "peer_lost"));
    for (const auto& noticed : board->noticed) CHECK(noticed - board->aborted < 250);
  }
}

TEST_CASE("faults: a rank that leaves is lost to those who wait for it, not before") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Meetup meetup(kind, 3);
    Ranks ranks(3, [&](uint32_t rank) -> std::string {
      auto group = connect(meetup.options(rank));
      if (!group) return group.error().message;
      if (!sum(**group, 10)) return "broken before";
      if (rank == 2) return "left";
      std::vector<std::byte> data(100'000, std::byte{static_cast<unsigned char>(rank)});
      for (int i = 0; i < 50; ++i) {
        const Status status = rank == 0 ? (*group)->send(data, 1) : (*group)->recv(data, 0);
        if (!status) return status.error().message;
      }
      return code_of(sum(**group, 10));
    });
    CHECK(ranks.results() == "peer_lost|peer_lost|left");
  }
}

TEST_CASE("faults: work between calls that is shorter than the deadline is waited for") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Meetup meetup(kind, 2);
    Ranks ranks(2, [&](uint32_t rank) -> std::string {
      Options options = meetup.options(rank);
      auto group = connect(options);
      if (!group) return group.error().message;
      (*group)->set_deadline(milliseconds(1500));
      std::vector<std::byte> data(size_t{24} << 20U);
      if (rank == 0) {
        const Status status = (*group)->send(data, 1);
        return status ? code_of(sum(**group, 1)) : status.error().message;
      }
      poll(nullptr, 0, 900);
      const Status status = (*group)->recv(data, 0);
      if (!status) return status.error().message;
      poll(nullptr, 0, 900);
      return code_of(sum(**group, 1));
    });
    CHECK(ranks.results() == each(2, "ok"));
  }
}

}  // namespace tandem::comm
