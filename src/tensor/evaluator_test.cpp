#include "tensor/evaluator.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tensor/step_memory.h"

namespace tandem::tensor {
namespace {

std::vector<float> values(array x) {
  x = mx::contiguous(x);
  mx::eval(x);
  return {x.data<float>(), x.data<float>() + x.size()};
}

array doubled(const array& x, int* runs = nullptr) {
  return cpu_op("Double", x.shape(), mx::float32, {x}, [runs](const auto& in, auto& out) {
    if (runs != nullptr) ++*runs;
    allocate(out[0]);
    for (size_t i = 0; i < out[0].size(); ++i)
      out[0].template data<float>()[i] = 2 * in[0].template data<float>()[i];
  });
}

/// Ours, stock ones, a sum, several outputs, and one node used twice.
array mixed_graph(int* runs = nullptr) {
  const array x({1.5F, -2.0F, 3.25F, 0.0F}, {2, 2});
  const array a = doubled(x, runs);
  const auto parts =
      cpu_ops("Split", {{2, 1}, {2, 1}}, mx::float32, {a}, [](const auto& in, auto& out) {
        view_columns(out[0], in[0], 2, 0);
        view_columns(out[1], in[0], 2, 1);
      });
  const array b = a + mx::exp(x);
  return mx::matmul(b, mx::concatenate({parts[1], parts[0]}, 1)) + a;
}

TEST_CASE("our evaluator gives what mx::eval gives, bit for bit, and runs each node once") {
  int runs = 0;
  array ours = mixed_graph(&runs);
  run_graph(ours);
  CHECK(runs == 1);
  CHECK(ours.status() == array::available);
  CHECK(values(ours) == values(mixed_graph()));
}

TEST_CASE("a node that throws leaves the rest unscheduled, and the walk can be tried again") {
  bool fails = true;
  int before = 0;
  const array first = doubled(array({1.0F, 2.0F}), &before);
  array last = cpu_op("Fails", {2}, mx::float32, {first}, [&](const auto& in, auto& out) {
    if (fails) throw std::runtime_error("not yet");
    out[0].copy_shared_buffer(in[0]);
  });
  last = doubled(last);
  CHECK_THROWS_WITH(run_graph(last), "not yet");
  CHECK(last.status() == array::unscheduled);
  fails = false;
  run_graph(last);
  CHECK(values(last) == std::vector<float>{4, 8});
  CHECK(before == 1);
}

TEST_CASE("a long chain neither overflows the stack nor keeps its middle alive") {
  array x = mx::zeros({1 << 12});
  x.eval();
  const size_t start = mx::get_active_memory();
  mx::reset_peak_memory();
  for (int i = 0; i < 20000; ++i) x = doubled(x);
  run_graph(x);
  CHECK(mx::get_peak_memory() - start <= 4 * (size_t{1} << 14));
}

array bound_double(const array& x, std::vector<const float*>* given = nullptr) {
  return cpu_op("Double", x.shape(), mx::float32, {x},
                [given](const auto& in, auto& out) -> CpuCall {
                  allocate(out[0]);
                  if (given != nullptr) given->push_back(out[0].template data<float>());
                  return [from = in[0].template data<float>(), size = in[0].size(),
                          to = out[0].template data<float>()] {
                    for (size_t i = 0; i < size; ++i) to[i] = 2 * from[i];
                  };
                });
}

TEST_CASE("a tape repeats a graph's calls on new inputs, in memory that the steps share") {
  StepMemory memory;
  array x({1.0F, 2.0F}), y({10.0F, 20.0F, 30.0F});
  Tape first, second;
  std::vector<const float*> given;
  const float* result = nullptr;
  const float* other = nullptr;
  {
    const StepMemory::Scope scope(memory);
    const array root = bound_double(bound_double(x, &given), &given) + bound_double(x, &given);
    run_graph(root, &first);
    result = root.data<float>();
    CHECK(reinterpret_cast<std::uintptr_t>(result) % 64 == 0);
    CHECK(values(root) == std::vector<float>{6, 12});
  }
  {
    const StepMemory::Scope scope(memory);
    const array root = bound_double(y);
    run_graph(root, &second);
    other = root.data<float>();
  }
  given.push_back(result);
  CHECK(std::ranges::count(given, other) > 0);  // blocks are rounded up, and all were free
  REQUIRE(first.is_whole());
  CHECK(first.size() == 4);
  x.data<float>()[0] = 5;
  first.replay();
  CHECK(result[0] == 30);
  CHECK(result[1] == 12);
  y.data<float>()[2] = -1;
  CHECK(second.replay_timed().count() > 0);
  CHECK(other[2] == -2);
}

TEST_CASE("step memory gives blocks of more bytes than an int counts") {
  StepMemory memory;
  array vast = bound_double(mx::zeros({40'000, 16'384}));  // never computed
  memory.give(vast);
  CHECK(vast.nbytes() == 2'621'440'000);
  vast.data<float>()[0] = 1;
  vast.data<float>()[vast.size() - 1] = 2;
  CHECK(reinterpret_cast<std::uintptr_t>(vast.data<float>()) % 64 == 0);
}

TEST_CASE("a tape gives up on what it cannot repeat") {
  Tape at_once, stock;
  const array x({1.0F, 2.0F});
  run_graph(doubled(x), &at_once);
  CHECK_FALSE(at_once.is_whole());
  const uint64_t before = stock_nodes();
  run_graph(bound_double(mx::exp(x)), &stock);
  CHECK_FALSE(stock.is_whole());
  CHECK(stock_nodes() == before + 1);
}

}  // namespace
}  // namespace tandem::tensor
