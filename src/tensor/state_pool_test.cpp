// States in slots: on both paths, on the CPU, and on the GPU where there is one.
#include "tensor/state_pool.h"

#include <doctest/doctest.h>

#include <random>

#include "tensor/device.h"
#include "tensor/evaluator.h"
#include "tensor/host.h"
#include "tensor/state_sum_test.h"

namespace tandem::tensor {
namespace {

constexpr uint32_t kSlots = 12, kFloats = 5;
constexpr StatePart kFirst = {.offset = 0, .floats = 2}, kSecond = {.offset = 2, .floats = 3};

/// What one slot should hold.
using State = std::array<float, kFloats>;

struct Scene {
  std::vector<StepRow> rows;
  std::vector<float> x;  // [tokens, kFloats]

  array columns(StatePart part) const {
    const int tokens = static_cast<int>(x.size() / kFloats), from = static_cast<int>(part.offset);
    return mx::contiguous(mx::slice(array(x.begin(), {tokens, static_cast<int>(kFloats)}),
                                    {0, from}, {tokens, from + static_cast<int>(part.floats)}));
  }
};

/// Rows of some tokens that go on from any slot and save in slots of their own, twice at the end.
Scene random_scene(std::mt19937& random) {
  std::vector<uint32_t> free(kSlots);
  for (uint32_t i = 0; i < kSlots; ++i) free[i] = i;
  std::shuffle(free.begin(), free.end(), random);
  Scene out;
  for (uint32_t r = 0; r < 3; ++r) {
    StepRow row{.tokens = std::vector<int32_t>(1 + random() % 6), .pages = {0, 0}};
    const auto length = static_cast<uint32_t>(row.tokens.size());
    if (random() % 3 != 0) row.state = free[3 * r];
    row.saves.push_back(
        {.tokens = 1 + static_cast<uint32_t>(random()) % length, .slot = free[3 * r + 1]});
    row.saves.push_back({.tokens = length, .slot = free[3 * r + random() % 2 * 2]});
    for (size_t i = 0; i < length * kFloats; ++i)
      out.x.push_back(static_cast<float>(random() % 64));
    out.rows.push_back(row);
  }
  return out;
}

/// The sums that a scene's tokens should have, and the slots after it.
std::vector<float> expected(const Scene& scene, std::vector<State>& slots) {
  std::vector<float> out;
  const float* x = scene.x.data();
  for (const StepRow& row : scene.rows) {
    State sum = row.state ? slots[*row.state] : State{};
    for (uint32_t t = 1; t <= row.tokens.size(); ++t) {
      for (float& each : sum) out.push_back(each += *x++);
      for (const StateSave& save : row.saves)
        if (save.tokens == t) slots[save.slot] = sum;
    }
  }
  return out;
}

void check_scenes(Path path) {
  std::mt19937 random(7);
  StatePool pool = make_state_pool(kSlots, kFloats);
  std::vector<State> slots(kSlots, State{});
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const Step fill({{.tokens = {0}, .pages = {0}, .saves = {{1, slot}}}}, 1);
    store_states(pool, {0, kFloats}, mx::zeros({1, static_cast<int>(kFloats)}), fill);
  }
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    const Scene scene = random_scene(random);
    const Step step(scene.rows, 16);
    const array first = state_sum(path, pool, kFirst, scene.columns(kFirst), step);
    const array second = state_sum(path, pool, kSecond, scene.columns(kSecond), step);
    const array out = mx::contiguous(mx::concatenate({first, second}, 1));
    if (mx::default_device() == mx::Device::cpu)
      run_graph(out);
    else
      mx::eval(out);
    const float* got = on_host<float>(out);
    CHECK(std::vector(got, got + out.size()) == expected(scene, slots));
  }
}

TEST_CASE("states are loaded from slots, zeros without one, and saved where rows say") {
  use_device(mx::Device(mx::Device::cpu));
  check_scenes(Path::kFast);
  check_scenes(Path::kPlain);
  if (best_device() == mx::Device(mx::Device::cpu)) return;
  use_device(best_device());
  check_scenes(Path::kPlain);
  use_device(mx::Device(mx::Device::cpu));
}

TEST_CASE("states of the wrong number or size are refused") {
  StatePool pool = make_state_pool(kSlots, kFloats);
  const Step step({{.tokens = {0}, .pages = {0}, .saves = {{1, 3}}}}, 1);
  CHECK_THROWS_AS(store_states(pool, kFirst, mx::zeros({2, 2}), step), std::invalid_argument);
  CHECK_THROWS_AS(store_states(pool, kFirst, mx::zeros({1, 3}), step), std::invalid_argument);
}

}  // namespace
}  // namespace tandem::tensor
