#include "format/layouts/gpt_oss_experts.h"

#include <doctest/doctest.h>

#include "format/testdata/memory_checkpoint.h"

namespace tandem::format {
namespace {

constexpr int64_t kExperts = 2, kInside = 3, kHidden = 64, kGroups = 2;
const std::string kPlace = "model.layers.0.mlp.experts.";

std::shared_ptr<MemoryCheckpoint> empty() {
  return std::make_shared<MemoryCheckpoint>(nlohmann::json{{"model_type", "gpt_oss"}});
}

/// A number for each place, below 251.
uint8_t number(int64_t kind, int64_t expert, int64_t output, int64_t at) {
  return static_cast<uint8_t>((kind * 31 + expert * 17 + output * 7 + at * 3) % 251);
}

constexpr int64_t kGate = 0, kUp = 1, kDown = 2;

/// The numbers of the fused projection, outputs of gate and up by turns.
template <class T>
std::vector<T> fused(int64_t width) {
  std::vector<T> out;
  for (int64_t e = 0; e < kExperts; ++e)
    for (int64_t o = 0; o < 2 * kInside; ++o)
      for (int64_t i = 0; i < width; ++i)
        out.push_back(static_cast<T>(number(o % 2 == 0 ? kGate : kUp, e, o / 2, i)));
  return out;
}

std::shared_ptr<MemoryCheckpoint> release() {
  auto out = empty();
  out->put(kPlace + "gate_up_proj_blocks", Dtype::kU8, {kExperts, 2 * kInside, kGroups, 16},
           fused<uint8_t>(kGroups * 16));
  out->put(kPlace + "gate_up_proj_scales", Dtype::kU8, {kExperts, 2 * kInside, kGroups},
           fused<uint8_t>(kGroups));
  out->put(kPlace + "gate_up_proj_bias", Dtype::kF32, {kExperts, 2 * kInside}, fused<float>(1));
  out->put("model.norm.weight", Dtype::kF32, {2}, std::vector<float>{1, 2});
  return out;
}

std::shared_ptr<const Checkpoint> shown(std::shared_ptr<const Checkpoint> published) {
  auto out = gpt_oss_experts(std::move(published));
  REQUIRE(out);
  return *std::move(out);
}

/// Whether expert `expert`, asked for alone, has these elements of a shown tensor.
template <class T>
void check_expert(const Checkpoint& checkpoint,
                  const std::string& name,
                  int64_t expert,
                  const std::vector<T>& expected) {
  CAPTURE(name);
  const auto one = checkpoint.tensor(name, RowRange{expert, expert + 1});
  REQUIRE(one);
  CHECK(one->shape[0] == 1);
  CHECK(elements_of<T>(*one) == expected);
}

template <class T>
std::vector<T> expected_of(int64_t kind, int64_t expert, int64_t outputs, int64_t width) {
  std::vector<T> out;
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < width; ++i) out.push_back(static_cast<T>(number(kind, expert, o, i)));
  return out;
}

TEST_CASE("gpt-oss: the release's experts come out as gate and up, in mxfp4") {
  const auto checkpoint = shown(release());
  for (const auto& [name, kind] : {std::pair("gate_proj", kGate), std::pair("up_proj", kUp)}) {
    const std::string module = kPlace + name;
    CHECK(**checkpoint->quantization(module) == Quantization{4, 32, QuantMode::kMxfp4});
    CHECK(checkpoint->describe(module + ".weight")->dtype == Dtype::kU32);
    CHECK(checkpoint->describe(module + ".weight")->shape ==
          std::vector<int64_t>{kExperts, kInside, kGroups * 4});
    CHECK(checkpoint->describe(module + ".scales")->shape ==
          std::vector<int64_t>{kExperts, kInside, kGroups});
    for (int64_t e = 0; e < kExperts; ++e) {
      check_expert(*checkpoint, module + ".weight", e,
                   expected_of<uint8_t>(kind, e, kInside, kGroups * 16));
      check_expert(*checkpoint, module + ".scales", e,
                   expected_of<uint8_t>(kind, e, kInside, kGroups));
      check_expert(*checkpoint, module + ".bias", e, expected_of<float>(kind, e, kInside, 1));
    }
  }
  CHECK(checkpoint->names() ==
        std::vector<std::string>{kPlace + "gate_proj.bias", kPlace + "gate_proj.scales",
                                 kPlace + "gate_proj.weight", kPlace + "up_proj.bias",
                                 kPlace + "up_proj.scales", kPlace + "up_proj.weight",
                                 "model.norm.weight"});
  CHECK(checkpoint->tensor("model.norm.weight")->bytes.size() == 8);
  CHECK_FALSE(checkpoint->quantization("model.norm")->has_value());
}

TEST_CASE("gpt-oss: transformers' matrices are turned, and their columns are gate's and up's") {
  auto published = empty();
  std::vector<uint16_t> gate_up, down;  // [experts, inputs, outputs]
  for (int64_t e = 0; e < kExperts; ++e)
    for (int64_t i = 0; i < kHidden; ++i)
      for (int64_t o = 0; o < 2 * kInside; ++o)
        gate_up.push_back(number(o % 2 == 0 ? kGate : kUp, e, o / 2, i));
  for (int64_t e = 0; e < kExperts; ++e)
    for (int64_t i = 0; i < kInside; ++i)
      for (int64_t o = 0; o < kHidden; ++o) down.push_back(number(kDown, e, o, i));
  published->put(kPlace + "gate_up_proj", Dtype::kBF16, {kExperts, kHidden, 2 * kInside}, gate_up);
  published->put(kPlace + "down_proj", Dtype::kBF16, {kExperts, kInside, kHidden}, down);
  const auto checkpoint = shown(published);
  CHECK(checkpoint->describe(kPlace + "down_proj.weight")->shape ==
        std::vector<int64_t>{kExperts, kHidden, kInside});
  for (int64_t e = 0; e < kExperts; ++e) {
    check_expert(*checkpoint, kPlace + "gate_proj.weight", e,
                 expected_of<uint16_t>(kGate, e, kInside, kHidden));
    check_expert(*checkpoint, kPlace + "up_proj.weight", e,
                 expected_of<uint16_t>(kUp, e, kInside, kHidden));
    check_expert(*checkpoint, kPlace + "down_proj.weight", e,
                 expected_of<uint16_t>(kDown, e, kHidden, kInside));
  }
  CHECK_FALSE(checkpoint->quantization(kPlace + "gate_proj")->has_value());
}

TEST_CASE("gpt-oss: what is converted, or of another family, stays as it is") {
  const auto other = release();
  other->edit_config()["model_type"] = "llama";
  CHECK(shown(other) == other);
  auto converted = empty();
  converted->put(kPlace + "down_proj.weight", Dtype::kF32, {1, 1, 1}, std::vector<float>{1});
  CHECK(shown(converted) == converted);
}

TEST_CASE("gpt-oss: a tensor of experts of another shape or kind is refused by name") {
  const auto refused = [](const char* leaf, Dtype dtype, std::vector<int64_t> shape) {
    auto published = empty();
    published->put(kPlace + leaf, dtype, std::move(shape), std::vector<uint8_t>(64));
    const auto out = gpt_oss_experts(published);
    return !out && out.error().message.starts_with(kPlace + leaf);
  };
  CHECK(refused("gate_up_proj_blocks", Dtype::kU8, {2, 2, 16}));
  CHECK(refused("gate_up_proj_blocks", Dtype::kU8, {1, 2, 4, 8}));
  CHECK(refused("gate_up_proj_blocks", Dtype::kI8, {1, 2, 2, 16}));
  CHECK(refused("gate_up_proj_scales", Dtype::kU8, {1, 3, 2}));
  CHECK(refused("down_proj_bias", Dtype::kF32, {16}));
  CHECK(refused("down_proj_zeros", Dtype::kU8, {1, 2, 2}));
}

}  // namespace
}  // namespace tandem::format
