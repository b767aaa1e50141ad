// Experts in one tensor, in both orders of transformers.
#include "format/layouts/stacked_experts.h"

#include <doctest/doctest.h>

#include <numeric>

#include "format/testdata/memory_checkpoint.h"

namespace tandem::format {
namespace {

constexpr size_t kStacked = 3, kColumns = 40, kInner = 6;
const std::string kBlock = "model.layers.0.mlp.";

enum class Projection : uint16_t { kOfGate, kOfUp, kOfDown };

/// An element's own number.
uint16_t element(Projection p, size_t expert, size_t output, size_t input) {
  return static_cast<uint16_t>(static_cast<size_t>(p) * 20000 + expert * 5000 + output * 100 +
                               input);
}

/// As linear layers keep them, or each matrix transposed.
std::shared_ptr<MemoryCheckpoint> stacks(bool is_transposed) {
  std::vector<uint16_t> inner, outer;
  const auto gate_up = [&](size_t e, size_t o, size_t i) {
    return o < kInner ? element(Projection::kOfGate, e, o, i)
                      : element(Projection::kOfUp, e, o - kInner, i);
  };
  for (size_t e = 0; e < kStacked; ++e) {
    if (is_transposed) {
      for (size_t i = 0; i < kColumns; ++i)
        for (size_t o = 0; o < 2 * kInner; ++o) inner.push_back(gate_up(e, o, i));
      for (size_t i = 0; i < kInner; ++i)
        for (size_t o = 0; o < kColumns; ++o)
          outer.push_back(element(Projection::kOfDown, e, o, i));
    } else {
      for (size_t o = 0; o < 2 * kInner; ++o)
        for (size_t i = 0; i < kColumns; ++i) inner.push_back(gate_up(e, o, i));
      for (size_t o = 0; o < kColumns; ++o)
        for (size_t i = 0; i < kInner; ++i) outer.push_back(element(Projection::kOfDown, e, o, i));
    }
  }
  auto out = std::make_shared<MemoryCheckpoint>(nlohmann::json::object());
  using Shape = std::vector<int64_t>;
  out->put(
      kBlock + "experts.gate_up_proj", Dtype::kBF16,
      is_transposed ? Shape{kStacked, kColumns, 2 * kInner} : Shape{kStacked, 2 * kInner, kColumns},
      inner);
  out->put(kBlock + "experts.down_proj", Dtype::kBF16,
           is_transposed ? Shape{kStacked, kInner, kColumns} : Shape{kStacked, kColumns, kInner},
           outer);
  out->put(kBlock + "gate.weight", Dtype::kBF16, {1, 1}, std::vector<uint16_t>{1});
  return out;
}

void check_stack(const Checkpoint& opened, const char* leaf, Projection p) {
  const bool is_down = p == Projection::kOfDown;
  const size_t outputs = is_down ? kColumns : kInner, inputs = is_down ? kInner : kColumns;
  const std::string name = kBlock + "switch_mlp." + leaf + ".weight";
  CHECK(opened.describe(name)->shape == std::vector<int64_t>{kStacked,
                                                             static_cast<int64_t>(outputs),
                                                             static_cast<int64_t>(inputs)});
  for (const RowRange experts : {RowRange{0, kStacked}, RowRange{1, 2}, RowRange{1, 3}}) {
    const auto got = opened.tensor(name, experts);
    REQUIRE(got.has_value());
    CHECK(got->shape == std::vector<int64_t>{experts.end - experts.begin,
                                             static_cast<int64_t>(outputs),
                                             static_cast<int64_t>(inputs)});
    std::vector<uint16_t> expected;
    for (auto e = static_cast<size_t>(experts.begin); e < static_cast<size_t>(experts.end); ++e)
      for (size_t o = 0; o < outputs; ++o)
        for (size_t i = 0; i < inputs; ++i) expected.push_back(element(p, e, o, i));
    CHECK(elements_of<uint16_t>(*got) == expected);
  }
}

TEST_CASE("stacked experts: gate, up and down of both orders") {
  for (const bool is_transposed : {false, true}) {
    CAPTURE(is_transposed);
    const auto opened = stacked_experts(stacks(is_transposed));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->names() == std::vector<std::string>{kBlock + "gate.weight",
                                                         kBlock + "switch_mlp.down_proj.weight",
                                                         kBlock + "switch_mlp.gate_proj.weight",
                                                         kBlock + "switch_mlp.up_proj.weight"});
    check_stack(**opened, "gate_proj", Projection::kOfGate);
    check_stack(**opened, "up_proj", Projection::kOfUp);
    check_stack(**opened, "down_proj", Projection::kOfDown);
  }
}

TEST_CASE("stacked experts: one expert of the usual order is a view, not a copy") {
  const auto stored = stacks(false);
  const auto opened = stacked_experts(stored);
  const auto whole = stored->tensor(kBlock + "experts.gate_up_proj");
  const auto up = (*opened)->tensor(kBlock + "switch_mlp.up_proj.weight", RowRange{2, 3});
  REQUIRE(up.has_value());
  CHECK(up->bytes.data() == whole->bytes.data() + (2 * 2 + 1) * kInner * kColumns * 2);
}

TEST_CASE("stacked experts: minimax_m3's shared expert lies behind the others, quantized or not") {
  const nlohmann::json config = {{"model_type", "minimax_m3_vl_text"},
                                 {"num_local_experts", 2},
                                 {"quantization", {{"group_size", 32}, {"bits", 4}}}};
  const auto stored = std::make_shared<MemoryCheckpoint>(config);
  const std::string block = "model.layers.3.block_sparse_moe.";
  const auto put = [&](const std::string& leaf, Dtype dtype, int64_t rows) {
    std::vector<uint32_t> numbers(static_cast<size_t>(3 * rows * 2));
    std::iota(numbers.begin(), numbers.end(), 0U);
    stored->put(block + "switch_mlp." + leaf, dtype, {3, rows, 2}, numbers);
  };
  for (const char* part : {".weight", ".scales", ".biases"}) {
    const Dtype dtype = std::string_view(part) == ".weight" ? Dtype::kU32 : Dtype::kF32;
    put(std::string("gate_up_proj") + part, dtype, 4);
    put(std::string("down_proj") + part, dtype, 3);
  }
  const auto opened = stacked_experts(stored);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->names().size() == 18);
  const auto numbers = [&](const char* name, std::optional<RowRange> rows = {}) {
    const auto got = (*opened)->tensor(block + name, rows);
    REQUIRE_MESSAGE(got.has_value(), got.error().message);
    return std::pair(got->shape, elements_of<uint32_t>(*got));
  };
  using Shape = std::vector<int64_t>;
  using Numbers = std::vector<uint32_t>;
  CHECK(numbers("switch_mlp.gate_proj.weight") ==
        std::pair(Shape{2, 2, 2}, Numbers{0, 1, 2, 3, 8, 9, 10, 11}));
  CHECK(numbers("switch_mlp.up_proj.scales", RowRange{1, 2}) ==
        std::pair(Shape{1, 2, 2}, Numbers{12, 13, 14, 15}));
  CHECK(numbers("switch_mlp.down_proj.biases", RowRange{1, 2}) ==
        std::pair(Shape{1, 3, 2}, Numbers{6, 7, 8, 9, 10, 11}));
  CHECK(numbers("shared_experts.up_proj.weight") ==
        std::pair(Shape{2, 2}, Numbers{20, 21, 22, 23}));
  CHECK(numbers("shared_experts.down_proj.scales", RowRange{1, 3}) ==
        std::pair(Shape{2, 2}, Numbers{14, 15, 16, 17}));
  for (const char* module :
       {"switch_mlp.up_proj", "shared_experts.gate_proj", "shared_experts.down_proj"})
    CHECK((*opened)->quantization(block + module)->value().group_size == 32);
  stored->reshape(block + "switch_mlp.gate_up_proj.scales", {4, 3, 2});
  const auto broken = stacked_experts(stored);
  REQUIRE(!broken.has_value());
  CHECK(broken.error().message.find("gate_up_proj.scales of shape [4, 3, 2]") != std::string::npos);
}

TEST_CASE("stacked experts: shapes that do not belong together are refused by name") {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3, 40, 7}, {2, 40, 6}, {3, 240}, {3, 12, 6}}) {
    const auto stored = stacks(false);
    stored->reshape(kBlock + "experts.down_proj", shape);
    const auto opened = stacked_experts(stored);
    REQUIRE(!opened.has_value());
    CHECK(opened.error().code == ErrorCode::kCorrupt);
    CHECK(opened.error().message.starts_with(kBlock + "experts.gate_up_proj of shape [3, 12, 40]"));
  }
  const auto lacking = stacks(true);
  lacking->remove(kBlock + "experts.down_proj");
  CHECK(stacked_experts(lacking).error().message.find("experts.down_proj") != std::string::npos);
}

TEST_CASE("stacked experts: those with biases, and checkpoints without, stay what they are") {
  const auto stored = stacks(false);
  stored->put(kBlock + "experts.gate_up_proj_bias", Dtype::kBF16, {1}, std::vector<uint16_t>{1});
  CHECK(*stacked_experts(stored) == stored);
  const auto plain = std::make_shared<MemoryCheckpoint>(nlohmann::json::object());
  CHECK(*stacked_experts(plain) == plain);
}

}  // namespace
}  // namespace tandem::format
