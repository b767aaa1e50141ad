#include "tensor/group.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tandem::tensor {
namespace {

using mx::array;
using mx::distributed::Group;

constexpr uint32_t kRanks = 3;

/// Runs a test case's body on three ranks, each a process: this binary again, with this case alone.
/// Threads would not do, since the streams of a process share one limit of unfinished tasks, and
/// MLX's threads do not survive a fork.
void on_ranks(const char* test_case, const std::function<void(comm::Transport&, Group&)>& body) {
  if (const char* rank = std::getenv("GROUP_TEST_RANK"); rank != nullptr) {
    auto transport = comm::connect({.rank = static_cast<uint32_t>(std::atoi(rank)),
                                    .size = kRanks,
                                    .name = std::getenv("GROUP_TEST_NAME"),
                                    .secret = std::vector<std::byte>(16, std::byte{5}),
                                    .deadline = std::chrono::seconds(20)});
    REQUIRE_MESSAGE(transport, (transport ? "" : transport.error().message));
    const std::shared_ptr<comm::Transport> shared = *std::move(transport);
    Group group = make_group(shared);
    body(*shared, group);
    return;
  }
  const std::string name = std::string(test_case) + std::to_string(getpid());
  const std::string filter = std::string("--test-case=") + test_case;
  std::vector<pid_t> ranks;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("GROUP_TEST_RANK", std::to_string(rank).c_str(), 1);
      setenv("GROUP_TEST_NAME", name.c_str(), 1);
      alarm(60);
      execl("/proc/self/exe", "/proc/self/exe", filter.c_str(), "--minimal", nullptr);
      _exit(127);
    }
    ranks.push_back(pid);
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    int state = 0;
    waitpid(ranks[rank], &state, 0);
    CAPTURE(rank);
    CHECK((WIFEXITED(state) && WEXITSTATUS(state) == 0));
  }
}

array values(int rank, mx::Shape shape, mx::Dtype dtype) {
  size_t count = 1;
  for (const int n : shape) count *= static_cast<size_t>(n);
  std::mt19937 random(static_cast<uint32_t>(rank));
  std::normal_distribution<float> normal;
  std::vector<float> row(count);
  for (float& value : row) value = normal(random);
  return mx::astype(array(row.data(), std::move(shape), mx::float32), dtype);
}

bool same(const array& a, const array& b) { return mx::array_equal(a, b).item<bool>(); }

}  // namespace

TEST_CASE("group: stock all_sum adds in rank order in float32 and rounds once in every type") {
  on_ranks("group: stock all_sum adds*", [](comm::Transport&, Group& group) {
    for (const mx::Dtype dtype : {mx::float32, mx::bfloat16, mx::float16}) {
      const array sum = mx::distributed::all_sum(values(group.rank(), {7, 300}, dtype), group);
      array expected = mx::astype(values(0, {7, 300}, dtype), mx::float32);
      for (int rank = 1; rank < 3; ++rank) {
        expected = expected + mx::astype(values(rank, {7, 300}, dtype), mx::float32);
      }
      CHECK(same(sum, mx::astype(expected, dtype)));
    }
  });
}

TEST_CASE("group: all_sum does not change an input that somebody still holds") {
  on_ranks("group: all_sum does not change*", [](comm::Transport&, Group& group) {
    array input = mx::full({64}, static_cast<float>(group.rank() + 1));
    mx::eval(input);
    array sum = mx::distributed::all_sum(input, group);
    mx::eval(sum);
    CHECK(same(sum, mx::full({64}, 6.0F)));
    CHECK(input.data<float>()[0] == static_cast<float>(group.rank() + 1));
    // A transposed input is laid out first; a donated one is summed in place.
    const array turned = mx::transpose(values(group.rank(), {3, 5}, mx::float32));
    array both = mx::distributed::all_sum(turned + array(0.0F), group);
    mx::eval(both);
    array apart = mx::transpose(mx::distributed::all_sum(mx::transpose(turned), group));
    mx::eval(apart);
    CHECK(same(both, apart));
  });
}

TEST_CASE("group: stock all_gather gives every rank's rows in rank order") {
  on_ranks("group: stock all_gather*", [](comm::Transport&, Group& group) {
    const array all = mx::distributed::all_gather(mx::full({2, 2}, group.rank(), mx::int32), group);
    CHECK(all.shape() == mx::Shape{6, 2});
    CHECK(same(all, array({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, {6, 2})));
  });
}

TEST_CASE("group: stock send and recv reach any rank") {
  on_ranks("group: stock send and recv*", [](comm::Transport&, Group& group) {
    if (group.rank() == 0) {
      mx::eval(mx::distributed::send(mx::arange(10), 2, group));
    } else if (group.rank() == 2) {
      CHECK(same(mx::distributed::recv({10}, mx::int32, 0, group), mx::arange(10)));
    }
  });
}

TEST_CASE("group: stock sum_scatter keeps this rank's rows of the sum") {
  on_ranks("group: stock sum_scatter*", [](comm::Transport&, Group& group) {
    const int rank = group.rank();
    const array whole = values(rank, {6, 5}, mx::float32);
    array part = mx::distributed::sum_scatter(whole, group);
    mx::eval(part);  // one after the other: the graph does not order them
    const array sum = mx::distributed::all_sum(whole, group);
    CHECK(same(part, mx::slice(sum, {rank * 2, 0}, {rank * 2 + 2, 5})));
  });
}

TEST_CASE("group: split makes groups that sum among themselves") {
  on_ranks("group: split makes*", [](comm::Transport&, Group& group) {
    const Group half = group.split(group.rank() == 1 ? 1 : 0);
    CHECK(half.size() == (group.rank() == 1 ? 1 : 2));
    CHECK(half.rank() == group.rank() / 2);
    array sum = mx::distributed::all_sum(array(1.0F), half);
    CHECK(sum.item<float>() == static_cast<float>(half.size()));
  });
}

TEST_CASE("group: a step of many sums chained by data keeps its order") {
  on_ranks("group: a step of many sums*", [](comm::Transport&, Group& group) {
    const array third(1.0F / 3);
    array x = mx::full({256}, 1.0F);
    array y = x;
    for (int layer = 0; layer < 60; ++layer) {
      x = mx::distributed::all_sum(x * third, group) + array(1.0F);
      const array part = y * third;
      y = part + part + part + array(1.0F);
    }
    CHECK(same(x, y));
  });
}

TEST_CASE("group: a failed collective reaches the waiting thread, and the group knows its kind") {
  on_ranks("group: a failed collective*", [](comm::Transport& transport, Group& group) {
    CHECK(status_of(group));
    bool thrown = false;
    for (int i = 0; i < 3 && !thrown; ++i) {
      if (group.rank() == 2 && i == 1) transport.abort();
      try {
        const float sum = mx::distributed::all_sum(array(1.0F), group).item<float>();
        CHECK(sum == 3.0F);
      } catch (const std::runtime_error&) {
        thrown = true;
      }
    }
    CHECK(thrown);
    REQUIRE(!status_of(group));
    CHECK(status_of(group).error().code == ErrorCode::kPeerLost);
    CHECK((array(1.0F) + array(2.0F)).item<float>() == 3.0F);  // other work goes on
  });
}

TEST_CASE("group: what is not supported is refused before anything is sent") {
  on_ranks("group: what is not supported*", [](comm::Transport&, Group& group) {
    array integers = mx::distributed::all_sum(array(1), group);
    CHECK_THROWS_AS(mx::eval(integers), std::invalid_argument);
    array largest = mx::distributed::all_max(array(1.0F), group);
    CHECK_THROWS_AS(mx::eval(largest), std::invalid_argument);
    CHECK(mx::distributed::all_sum(array(1.0F), group).item<float>() == 3.0F);
  });
}

}  // namespace tandem::tensor
