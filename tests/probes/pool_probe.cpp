// A KV pool is one array, written in place through its pointer, in an order that tokens enforce.
#include <doctest/doctest.h>

#include <cstring>
#include <deque>

#include "host_op.h"

namespace probe {
namespace {

constexpr int kSlots = 64;
constexpr int kWidth = 256;

struct Pool {
  array memory;
  array token;
};

Pool make_pool() { return {zeros({kSlots, kWidth}), zeros({1})}; }

float* pointer(const array& pool) { return const_cast<array&>(pool).data<float>(); }

/// Writes `row` into a slot; returns a token that stands for the pool after it.
array write(const Pool& pool, const array& row, int slot) {
  return host_op({1}, {pool.memory, row, pool.token}, [slot](const Arrays& in, Arrays& out) {
    std::memcpy(pointer(in[0]) + slot * kWidth, in[1].data<float>(), kWidth * sizeof(float));
    out[0].data<float>()[0] = 0;
  });
}

/// Sum of the first slots, after `token`.
array read(const array& memory, const array& token, int slots) {
  return host_op({kWidth}, {memory, token}, [slots](const Arrays& in, Arrays& out) {
    const float* data = in[0].data<float>();
    for (int i = 0; i < kWidth; ++i) {
      float sum = 0;
      for (int slot = 0; slot < slots; ++slot) sum += data[slot * kWidth + i];
      out[0].data<float>()[i] = sum;
    }
  });
}

array fill(const array& memory, const Arrays& after, float value) {
  Arrays inputs{memory};
  inputs.insert(inputs.end(), after.begin(), after.end());
  return host_op({1}, inputs, [value](const Arrays& in, Arrays& out) {
    std::fill_n(pointer(in[0]), kSlots * kWidth, value);
    out[0].data<float>()[0] = 0;
  });
}

/// What the steps below compute, in plain C++.
std::vector<std::vector<float>> expected_steps(int layers, int steps) {
  std::vector<std::vector<float>> pools(static_cast<size_t>(layers),
                                        std::vector<float>(kSlots * kWidth, 0.0F));
  std::vector<std::vector<float>> results;
  for (int step = 0; step < steps; ++step) {
    std::vector<float> x(kWidth, 1.0F + static_cast<float>(step));
    for (auto& pool : pools) {
      std::copy(x.begin(), x.end(), pool.begin() + (step % kSlots) * kWidth);
      for (size_t i = 0; i < kWidth; ++i) {
        float sum = 0;
        for (size_t slot = 0; slot < kSlots; ++slot) sum += pool[slot * kWidth + i];
        x[i] = sum * 0.01F;
      }
    }
    results.push_back(x);
  }
  return results;
}

}  // namespace

TEST_CASE("pool: fixed handle and ordering token are right at every step, however many in flight") {
  constexpr int kLayers = 8;
  constexpr int kSteps = 60;
  const auto expected = expected_steps(kLayers, kSteps);
  for (const size_t in_flight : {1U, 2U, 4U}) {
    std::vector<Pool> pools;
    for (int layer = 0; layer < kLayers; ++layer) pools.push_back(make_pool());
    std::vector<float*> places;
    for (const Pool& pool : pools) places.push_back(pointer(pool.memory));
    std::deque<array> running;
    size_t done = 0;
    int wrong = 0;
    const auto finish = [&] {
      running.front().wait();
      const float* got = running.front().data<float>();
      if (std::memcmp(got, expected[done++].data(), kWidth * sizeof(float)) != 0) ++wrong;
      running.pop_front();
    };
    for (int step = 0; step < kSteps; ++step) {
      array x = mx::full({kWidth}, 1.0F + static_cast<float>(step));
      for (Pool& pool : pools) {
        const array written = write(pool, x, step % kSlots);
        const array attended = read(pool.memory, written, kSlots);
        pool.token = attended;  // the next write comes after this read
        x = attended * array(0.01F);
      }
      mx::async_eval(x);
      running.push_back(x);
      if (running.size() >= in_flight) finish();
    }
    while (!running.empty()) finish();
    CHECK(wrong == 0);
    for (size_t layer = 0; layer < kLayers; ++layer) {
      CHECK(pointer(pools[layer].memory) == places[layer]);
    }
  }
}

TEST_CASE("pool: the graph does not order two operations that merely share a buffer") {
  const array memory = zeros({kSlots, kWidth});
  const array first = fill(memory, {}, 1.0F);
  const array seen = read(memory, first, 1);
  const array second = fill(memory, {first}, 2.0F);
  mx::eval(seen, second);
  // Listed first, run last: this is why there is a token.
  CHECK(seen.data<float>()[0] == 2.0F);
}

TEST_CASE("pool: with a token the order holds, whatever order eval is given") {
  for (const bool reversed : {false, true}) {
    const array memory = zeros({kSlots, kWidth});
    const array first = fill(memory, {}, 1.0F);
    const array seen = read(memory, first, 1);
    const array second = fill(memory, {seen}, 2.0F);
    reversed ? mx::eval(second, seen) : mx::eval(seen, second);
    CHECK(seen.data<float>()[0] == 1.0F);
    CHECK(memory.data<float>()[0] == 2.0F);
  }
}

TEST_CASE("pool: separate evaluations on one CPU stream run in order without an edge") {
  const array memory = zeros({kSlots, kWidth});
  Arrays seen;
  for (int i = 0; i < 20; ++i) {
    const array written = fill(memory, {}, static_cast<float>(i));
    mx::async_eval(written);
    seen.push_back(read(memory, zeros({1}), 1));
    mx::async_eval(seen.back());
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    seen[i].wait();
    CHECK(seen[i].data<float>()[0] == static_cast<float>(i));
  }
}

TEST_CASE("pool: an input is never donated while its owner holds a handle") {
  const auto donatable = [](bool hold) {
    bool result = false;
    array a = zeros({16});
    const std::optional<array> owner = hold ? std::optional(a) : std::nullopt;
    array out = host_op(
        {1}, {std::move(a)}, [](const Arrays&, Arrays& o) { o[0].data<float>()[0] = 0; },
        [&](const Arrays& in) { result = in[0].is_donatable(); });
    mx::eval(out);
    return result;
  };
  CHECK(!donatable(true));
  CHECK(donatable(false));
}

TEST_CASE("pool: a stock operation that could donate leaves a held pool alone") {
  const array memory = mx::full({1024}, 1.0F);
  mx::eval(const_cast<array&>(memory));
  const float* place = memory.data<float>();
  array negated = -memory;
  mx::eval(negated);
  CHECK(negated.data<float>() != place);
  CHECK(memory.data<float>()[0] == 1.0F);
}

TEST_CASE("pool: a step that is dropped or throws loses no handle and writes nothing") {
  Pool pool = make_pool();
  {
    const array dropped = write(pool, mx::full({kWidth}, 9.0F), 0);
  }
  CHECK(pool.memory.data<float>()[0] == 0.0F);
  const array broken = host_op(
      {1}, {pool.memory, pool.token}, [](const Arrays&, Arrays&) {},
      [](const Arrays&) { throw std::runtime_error("broken"); });
  CHECK_THROWS_WITH(mx::eval(broken), "broken");
  array token = write(pool, mx::full({kWidth}, 3.0F), 1);
  mx::eval(token);
  CHECK(pool.memory.data<float>()[kWidth] == 3.0F);
}

TEST_CASE("pool: handles of a step in flight may be dropped") {
  const Pool pool = make_pool();
  for (int i = 0; i < 50; ++i) {
    array token = write(pool, mx::full({kWidth}, static_cast<float>(i)), i);
    mx::async_eval(token);
  }
  mx::synchronize();
  for (int i = 0; i < 50; ++i) {
    CHECK(pool.memory.data<float>()[i * kWidth] == static_cast<float>(i));
  }
}

}  // namespace probe
