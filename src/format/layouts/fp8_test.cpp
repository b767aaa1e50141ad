// FP8: every number times the scale of its block.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "format/layouts/published.h"
#include "format/testdata/memory_checkpoint.h"

namespace tandem::format {
namespace {

constexpr const char* kName = "a.q_proj.weight";

/// E4M3 by its bits: put under a float's exponent they are 2^-120 times as large.
float value_of(uint8_t code) {
  const uint32_t bits = (code & 0x80U) << 24 | (code & 0x7fU) << 20;
  return std::bit_cast<float>(bits) * std::ldexp(1.0F, 120);
}

/// bfloat16 of a number, by looking which neighbour is nearer; of two, the even one.
uint16_t rounded(float value) {
  const auto below = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  const auto above = static_cast<uint16_t>(below + 1);
  const auto distance = [&](uint16_t bits) {
    return std::fabs(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16)) -
                     static_cast<double>(value));
  };
  if (distance(below) != distance(above)) return distance(below) < distance(above) ? below : above;
  return below % 2 == 0 ? below : above;
}

std::vector<uint8_t> codes_for(size_t count) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < count; ++i) {
    const auto code = static_cast<uint8_t>(i * 37 + i / 256);
    out.push_back((code & 0x7fU) == 0x7fU ? 0 : code);  // no NaN
  }
  return out;
}

/// Scales with all the bits that float32 has.
float scale_at(size_t i) { return 0.01F + 0.000123F * static_cast<float>(i); }

std::vector<float> scales_for(size_t count) {
  std::vector<float> out;
  for (size_t i = 0; i < count; ++i) out.push_back(scale_at(i));
  return out;
}

std::shared_ptr<MemoryCheckpoint> fp8(nlohmann::json method = {{"quant_method", "fp8"}}) {
  return std::make_shared<MemoryCheckpoint>(
      nlohmann::json{{"model_type", "qwen3"}, {"quantization_config", std::move(method)}});
}

/// Compares rows of a matrix, or all of a stack, with codes times `scale_of(matrix, row, column)`.
void check_rows_of(const Checkpoint& opened,
                   const std::vector<int64_t>& shape,
                   RowRange range,
                   const std::function<float(size_t, size_t, size_t)>& scale_of) {
  const auto got = opened.tensor(kName, range);
  REQUIRE_MESSAGE(got.has_value(), got.error().message);
  CHECK(got->dtype == Dtype::kBF16);
  CHECK(got->shape[0] == range.end - range.begin);
  const bool is_stack = shape.size() == 3;
  const auto height = static_cast<size_t>(shape[is_stack ? 1 : 0]);
  const auto columns = static_cast<size_t>(shape.back());
  const size_t first = static_cast<size_t>(range.begin) * (is_stack ? height : 1);
  const size_t last = static_cast<size_t>(range.end) * (is_stack ? height : 1);
  const auto codes = codes_for(static_cast<size_t>(is_stack ? shape[0] : 1) * height * columns);
  std::vector<uint16_t> expected;
  for (size_t r = first; r < last; ++r)
    for (size_t c = 0; c < columns; ++c)
      expected.push_back(
          rounded(value_of(codes[r * columns + c]) * scale_of(r / height, r % height, c)));
  CHECK(elements_of<uint16_t>(*got) == expected);
}

TEST_CASE("fp8: blocks of 128 by 128, the last ones smaller") {
  const std::vector<int64_t> shape = {200, 300};
  const auto packed = fp8();
  packed->put(kName, Dtype::kF8E4M3, shape, codes_for(200 * 300));
  packed->put("a.q_proj.weight_scale_inv", Dtype::kF32, {2, 3}, scales_for(6));
  packed->put("a.q_proj.activation_scale", Dtype::kF32, {}, scales_for(1));
  const auto opened = published_layout(packed);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->names() == std::vector<std::string>{kName});
  CHECK((*opened)->describe(kName)->dtype == Dtype::kBF16);
  CHECK(!(*opened)->quantization("a.q_proj")->has_value());
  const auto scale = [](size_t, size_t r, size_t c) { return scale_at(r / 128 * 3 + c / 128); };
  for (const RowRange rows : {RowRange{0, 200}, RowRange{100, 131}, RowRange{199, 200}})
    check_rows_of(**opened, shape, rows, scale);
  CHECK(!(*opened)->tensor(kName, RowRange{0, 201}));
}

TEST_CASE("fp8: blocks of the config's size, with scales that are bfloat16 or powers of two") {
  const std::vector<int64_t> shape = {40, 96};
  for (const Dtype dtype : {Dtype::kBF16, Dtype::kF8E8M0}) {
    const auto packed = fp8({{"quant_method", "fp8"}, {"weight_block_size", {32, 64}}});
    packed->put(kName, Dtype::kF8E4M3, shape, codes_for(40 * 96));
    if (dtype == Dtype::kBF16)
      packed->put("a.q_proj.weight_scale_inv", dtype, {2, 2},
                  std::vector<uint16_t>{0x3f80, 0x3fc0, 0x4000, 0x4040});  // 1, 1.5, 2, 3
    else
      packed->put("a.q_proj.weight_scale_inv", dtype, {2, 2},
                  std::vector<uint8_t>{127, 120, 128, 130});  // 1, 1/128, 2, 8
    const auto opened = published_layout(packed);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const float of[2][4] = {{1, 1.5F, 2, 3}, {1, 1.0F / 128, 2, 8}};
    check_rows_of(**opened, shape, {7, 40}, [&](size_t, size_t r, size_t c) {
      return of[dtype == Dtype::kBF16 ? 0 : 1][r / 32 * 2 + c / 64];
    });
  }
}

TEST_CASE("fp8: one scale for a tensor, and one for each row") {
  const std::vector<int64_t> shape = {130, 20};
  for (const std::vector<int64_t>& scales :
       {std::vector<int64_t>{}, {1}, {1, 1}, {130}, {130, 1}}) {
    const bool is_one = scales.empty() || scales[0] == 1;
    const auto packed =
        fp8({{"quant_method", "compressed-tensors"}, {"format", "float-quantized"}});
    packed->put(kName, Dtype::kF8E4M3, shape, codes_for(130 * 20));
    packed->put("a.q_proj.weight_scale", Dtype::kF32, scales, scales_for(is_one ? 1 : 130));
    const auto opened = published_layout(packed);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    check_rows_of(**opened, shape, {5, 130},
                  [&](size_t, size_t r, size_t) { return scale_at(is_one ? 0 : r); });
  }
}

TEST_CASE("fp8: stacks of matrices with blocks or scales of their own") {
  const std::vector<int64_t> shape = {3, 140, 20};
  struct Case {
    std::vector<int64_t> scales;
    size_t count;
    size_t (*at)(size_t matrix, size_t row);
  };
  for (const Case& each : {Case{{3, 2, 1}, 6, [](size_t m, size_t r) { return m * 2 + r / 128; }},
                           Case{{3, 1, 1}, 3, [](size_t m, size_t) { return m; }},
                           Case{{3}, 3, [](size_t m, size_t) { return m; }},
                           Case{{3, 140, 1}, 420, [](size_t m, size_t r) { return m * 140 + r; }},
                           Case{{1}, 1, [](size_t, size_t) { return size_t{0}; }}}) {
    const auto packed = fp8();
    packed->put(kName, Dtype::kF8E4M3, shape, codes_for(3 * 140 * 20));
    packed->put("a.q_proj.weight_scale_inv", Dtype::kF32, each.scales, scales_for(each.count));
    const auto opened = published_layout(packed);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    for (const RowRange matrices : {RowRange{0, 3}, RowRange{2, 3}})
      check_rows_of(**opened, shape, matrices,
                    [&](size_t m, size_t r, size_t) { return scale_at(each.at(m, r)); });
  }
}

TEST_CASE("fp8: NaN stays NaN, so that loading finds it") {
  const auto packed = fp8();
  packed->put(kName, Dtype::kF8E4M3, {1, 2}, std::vector<uint8_t>{0x7f, 0xff});
  packed->put("a.q_proj.weight_scale_inv", Dtype::kF32, {1}, scales_for(1));
  const auto opened = published_layout(packed);
  REQUIRE(opened.has_value());
  for (const uint16_t bits : elements_of<uint16_t>(*(*opened)->tensor(kName)))
    CHECK((bits & 0x7fffU) > 0x7f80U);
}

TEST_CASE("fp8: damaged checkpoints are refused by the name of a tensor") {
  const auto refused = [](const std::function<void(MemoryCheckpoint&)>& damage) {
    const auto packed = fp8();
    packed->put(kName, Dtype::kF8E4M3, {200, 300}, codes_for(200 * 300));
    packed->put("a.q_proj.weight_scale_inv", Dtype::kF32, {2, 3}, scales_for(6));
    damage(*packed);
    const auto opened = published_layout(packed);
    REQUIRE(!opened.has_value());
    return opened.error().message;
  };
  const auto has = [](const std::string& message, const char* part) {
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  const std::string scale = "a.q_proj.weight_scale_inv";
  has(refused([&](auto& m) { m.remove(scale); }), "a.q_proj.weight is of type F8_E4M3, but there");
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3, 2}, {2, 2}, {6}, {199}, {2, 3, 1}, {0}})
    has(refused([&](auto& m) { m.reshape(scale, shape); }), scale.c_str());
  has(refused([&](auto& m) { m.reshape(kName, {60000}); }), scale.c_str());
  has(refused([&](auto& m) { m.put(scale, Dtype::kI32, {2, 3}, scales_for(6)); }), "type I32");
  has(refused([&](auto& m) { m.put("a.k_proj.weight", Dtype::kF8E5M2, {1, 1}, codes_for(1)); }),
      "a.k_proj.weight is of type F8_E5M2");
  has(refused([&](auto& m) { m.put("a.k_proj.weight_scale", Dtype::kF8E4M3, {1}, codes_for(1)); }),
      "a.k_proj.weight_scale is a scale of type F8_E4M3, as NVFP4");
  const nlohmann::json sizes = {128, {128}, {0, 128}, {128, "128"}, {-1, 2}};
  for (const nlohmann::json& size : sizes)
    has(refused(
            [&](auto& m) { m.edit_config()["quantization_config"]["weight_block_size"] = size; }),
        "weight_block_size should be two positive integers");
}

TEST_CASE(
    "mxfp8: codes and exponents are MLX's, byte for byte; other matrices stay what they are") {
  const auto stored = fp8({{"quant_method", "mxfp8"}});
  const std::vector<uint8_t> codes = codes_for(192), exponents = {120, 121, 122, 123, 124, 125};
  stored->put(kName, Dtype::kF8E4M3, {3, 64}, codes);
  stored->put("a.q_proj.weight_scale_inv", Dtype::kU8, {3, 2}, exponents);
  stored->put("a.norm.weight", Dtype::kF32, {2}, scales_for(2));
  const auto opened = published_layout(stored);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->names() ==
        std::vector<std::string>{"a.norm.weight", "a.q_proj.scales", "a.q_proj.weight"});
  CHECK((*opened)->describe(kName)->dtype == Dtype::kU32);
  CHECK((*opened)->describe(kName)->shape == std::vector<int64_t>{3, 16});
  const auto rows = (*opened)->tensor(kName, RowRange{1, 3});
  REQUIRE(rows.has_value());
  CHECK(rows->shape == std::vector<int64_t>{2, 16});
  CHECK(elements_of<uint8_t>(*rows) == std::vector<uint8_t>(codes.begin() + 64, codes.end()));
  CHECK(elements_of<uint8_t>(*(*opened)->tensor("a.q_proj.scales", RowRange{1, 2})) ==
        std::vector<uint8_t>{122, 123});
  CHECK((*opened)->quantization("a.q_proj")->value().mode == QuantMode::kMxfp8);
  CHECK(!(*opened)->quantization("a.norm")->has_value());
  stored->reshape("a.q_proj.weight_scale_inv", {6, 1});
  const auto broken = published_layout(stored);
  REQUIRE(!broken.has_value());
  CHECK(broken.error().message.find("weight_scale_inv of type U8 and shape [6, 1]") !=
        std::string::npos);
}

}  // namespace
}  // namespace tandem::format
