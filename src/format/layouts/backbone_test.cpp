#include "format/layouts/backbone.h"

#include <doctest/doctest.h>

#include "format/testdata/memory_checkpoint.h"

namespace tandem::format {
namespace {

std::shared_ptr<MemoryCheckpoint> backbone() {
  nlohmann::json quantization = {{"group_size", 64}, {"bits", 4}};
  quantization["backbone.layers.0.mixer.in_proj"] = {{"group_size", 32}, {"bits", 8}};
  auto out = std::make_shared<MemoryCheckpoint>(nlohmann::json{{"quantization", quantization}});
  const std::vector<float> two = {1, 2};
  for (const char* name : {"backbone.embeddings.weight", "backbone.norm_f.weight",
                           "backbone.layers.0.mixer.in_proj.weight",
                           "backbone.layers.0.mixer.in_proj.scales", "lm_head.weight", "mtp.a"})
    out->put(name, Dtype::kF32, {2, 1}, two);
  return out;
}

TEST_CASE("backbone: modules are seen under the names that other families have") {
  const auto opened = without_backbone(backbone());
  REQUIRE(opened.has_value());
  const Checkpoint& all = **opened;
  CHECK(all.names() == std::vector<std::string>{"lm_head.weight", "model.embed_tokens.weight",
                                                "model.layers.0.mixer.in_proj.scales",
                                                "model.layers.0.mixer.in_proj.weight",
                                                "model.norm.weight", "mtp.a"});
  CHECK_FALSE(all.has("backbone.norm_f.weight"));
  const auto row = all.tensor("model.embed_tokens.weight", RowRange{1, 2});
  REQUIRE(row.has_value());
  CHECK(row->shape == std::vector<int64_t>{1, 1});
  CHECK(*reinterpret_cast<const float*>(row->bytes.data()) == 2);
  const auto quantization = all.quantization("model.layers.0.mixer.in_proj");
  REQUIRE(quantization.has_value());
  CHECK((*quantization)->bits == 8);
  CHECK((*quantization)->group_size == 32);
}

TEST_CASE("backbone: other checkpoints stay as they are, and a name that is taken is refused") {
  const auto plain = std::make_shared<MemoryCheckpoint>(nlohmann::json::object());
  CHECK(without_backbone(plain)->get() == plain.get());
  const auto twice = backbone();
  twice->put("model.norm.weight", Dtype::kF32, {1}, std::vector<float>{1});
  const auto opened = without_backbone(twice);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message.find("backbone.norm_f.weight") != std::string::npos);
}

}  // namespace
}  // namespace tandem::format
