// A graph of our own primitives can be run on the calling thread through MLX's public API alone.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <unordered_set>

#include "host_op.h"

namespace probe {
namespace {

/// Post-order over what is not scheduled yet; our operations run here, others through mx::eval.
void run_graph(const array& root) {
  std::vector<std::pair<array, size_t>> stack{{root, 0}};
  std::unordered_set<std::uintptr_t> seen{root.id()};
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (node.status() == array::unscheduled && node.has_primitive() &&
        next < node.inputs().size()) {
      const array input = node.inputs()[next++];
      if (input.status() == array::unscheduled && seen.insert(input.id()).second) {
        stack.emplace_back(input, 0);
      } else if (input.status() == array::evaluated) {
        const_cast<array&>(input).wait();
      }
      continue;
    }
    array done = node;
    stack.pop_back();
    if (done.status() != array::unscheduled) continue;
    if (auto* op = dynamic_cast<HostOp*>(&done.primitive())) {
      Arrays outputs = done.outputs();
      op->run(done.inputs(), outputs);
      for (array& out : outputs) out.set_status(array::available);
      done.detach();
    } else {
      mx::eval(done);
    }
  }
}

void add_one(const Arrays& in, Arrays& out) {
  for (size_t i = 0; i < out[0].size(); ++i) {
    out[0].data<float>()[i] = in[0].data<float>()[i] + 1.0F;
  }
}

/// Two outputs: halves and doubles.
Arrays two_outputs(const array& x) {
  const auto work = [](const Arrays& in, Arrays& out) {
    for (size_t i = 0; i < in[0].size(); ++i) {
      out[0].data<float>()[i] = in[0].data<float>()[i] * 0.5F;
      out[1].data<float>()[i] = in[0].data<float>()[i] * 2.0F;
    }
  };
  return array::make_arrays({x.shape(), x.shape()}, {mx::float32, mx::float32},
                            std::make_shared<HostOp>(cpu(), work), {x});
}

array mixed_graph() {
  array x = mx::full({128}, 0.1F);
  for (int i = 0; i < 20; ++i) {
    const Arrays both = two_outputs(host_op({128}, {x}, add_one));
    x = both[i % 2 == 0 ? 0 : 1] + both[1] * array(0.001F);  // a stock operation in between
  }
  return x;
}

}  // namespace

TEST_CASE("evaluator: several outputs and stock operations in between equal mx::eval bit for bit") {
  array ours = mixed_graph();
  array stock = mixed_graph();
  run_graph(ours);
  mx::eval(stock);
  CHECK(ours.status() != array::unscheduled);
  CHECK(std::memcmp(ours.data<float>(), stock.data<float>(), ours.nbytes()) == 0);
}

TEST_CASE("evaluator: the siblings of an output are available too, and are run once") {
  std::atomic<int> runs{0};
  const auto work = [&runs](const Arrays&, Arrays& out) {
    ++runs;
    for (array& o : out) o.data<float>()[0] = 1.0F;
  };
  const Arrays both = array::make_arrays({{1}, {1}}, {mx::float32, mx::float32},
                                         std::make_shared<HostOp>(cpu(), work), {zeros({1})});
  run_graph(both[1]);
  CHECK(both[0].status() == array::available);
  run_graph(both[0]);
  CHECK(runs == 1);
}

TEST_CASE("evaluator: an operation that throws leaves the graph unscheduled, to be run again") {
  bool broken = true;
  const array first = host_op({4}, {zeros({4})}, add_one);
  const array second = host_op({4}, {first}, [&broken](const Arrays& in, Arrays& out) {
    if (broken) throw std::runtime_error("broken");
    add_one(in, out);
  });
  const array third = host_op({4}, {second}, add_one);
  CHECK_THROWS_WITH(run_graph(third), "broken");
  CHECK(first.status() == array::available);
  CHECK(second.status() == array::unscheduled);
  CHECK(third.status() == array::unscheduled);
  broken = false;
  run_graph(third);
  CHECK(third.data<float>()[3] == 3.0F);
}

TEST_CASE("evaluator: detach drops inputs, so that a long chain holds a few buffers at most") {
  constexpr int kLength = 30;
  constexpr int kMegabyte = 1 << 20;
  array x = zeros({kMegabyte / 4});
  for (int i = 0; i < kLength; ++i) x = host_op({kMegabyte / 4}, {x}, add_one);
  const size_t before = mx::get_active_memory();
  mx::reset_peak_memory();
  run_graph(x);
  CHECK(x.data<float>()[0] == 30.0F);
  CHECK(mx::get_peak_memory() - before < size_t{8} * kMegabyte);
}

TEST_CASE("evaluator: its results feed stock operations and mx::eval") {
  array x = host_op({8}, {zeros({8})}, add_one);
  run_graph(x);
  array sum = mx::sum(x);
  CHECK(sum.item<float>() == 8.0F);
}

TEST_CASE("evaluator: a primitive may be gone before its task has run") {
  struct Watched {
    explicit Watched(std::atomic<bool>& flag) : gone(flag) {}
    ~Watched() { gone = true; }
    std::atomic<bool>& gone;
  };
  std::atomic<bool> gone{false};
  std::promise<void> gate;
  auto opened = gate.get_future().share();
  const array stuck = host_op({1}, {zeros({1})}, [opened](const Arrays&, Arrays& out) {
    opened.wait();
    out[0].data<float>()[0] = 1.0F;
  });
  std::atomic<bool> ran{false};
  auto watched = std::make_shared<Watched>(gone);
  // at_eval belongs to the primitive alone: it goes when the primitive goes.
  array next = host_op(
      {1}, {stuck},
      [&ran](const Arrays&, Arrays& out) {
        ran = true;
        out[0].data<float>()[0] = 2.0F;
      },
      [watched = std::move(watched)](const Arrays&) {});
  mx::async_eval(next);
  CHECK(gone);
  CHECK(!ran);
  gate.set_value();
  next.wait();
  CHECK(next.data<float>()[0] == 2.0F);
}

TEST_CASE("evaluator: the buffer cache keeps what it is allowed to, and gives it back") {
  const size_t before = mx::set_cache_limit(size_t{1} << 30U);
  mx::clear_cache();
  {
    const array big = zeros({25 << 20});
  }  // 100 MB
  CHECK(mx::get_cache_memory() >= size_t{100} << 20U);
  CHECK(mx::set_cache_limit(before) == size_t{1} << 30U);
  mx::clear_cache();
  CHECK(mx::get_cache_memory() == 0);
}

}  // namespace probe
