#include "runner/kv_type.h"

#include <doctest/doctest.h>

#include <map>

#include "runner/memory.h"

namespace tandem::runner {
namespace {

namespace mx = tensor::mx;
using format::Dtype;

/// Tensors of one element.
class TypedCheckpoint final : public format::Checkpoint {
 public:
  explicit TypedCheckpoint(std::map<std::string, Dtype> types) : types_(std::move(types)) {}

  const nlohmann::json& config() const override { return config_; }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, type] : types_) out.push_back(name);
    return out;
  }
  bool has(std::string_view name) const override { return types_.contains(std::string(name)); }
  Result<format::Tensor> describe(std::string_view name) const override {
    format::Tensor out;
    out.dtype = types_.at(std::string(name));
    out.shape = {1};
    return out;
  }
  Result<format::Tensor> tensor(std::string_view, std::optional<format::RowRange>) const override {
    return Error{ErrorCode::kNotFound, "only described"};
  }
  Result<std::optional<format::Quantization>> quantization(std::string_view) const override {
    return std::optional<format::Quantization>();
  }
  uint64_t weight_bytes() const override { return 0; }
  std::filesystem::path directory() const override { return {}; }

 private:
  std::map<std::string, Dtype> types_;
  nlohmann::json config_;
};

const std::string kModule = "model.layers.0.self_attn.k_proj.";

mx::Dtype automatic(std::map<std::string, Dtype> types) {
  return kv_dtype(TypedCheckpoint(std::move(types)), KvType::kAuto);
}

TEST_CASE("keys and values are float32 where projections or their scales are, else float16") {
  CHECK(automatic({{kModule + "weight", Dtype::kF32}}) == mx::float32);
  CHECK(automatic({{kModule + "weight", Dtype::kF16}}) == mx::float16);
  CHECK(automatic({{kModule + "weight", Dtype::kBF16}}) == mx::float16);
  CHECK(automatic({{kModule + "weight", Dtype::kU32}, {kModule + "scales", Dtype::kF32}}) ==
        mx::float32);
  CHECK(automatic({{kModule + "weight", Dtype::kU32}, {kModule + "scales", Dtype::kF16}}) ==
        mx::float16);
}

TEST_CASE("norms and biases of float32 do not make keys and values so") {
  CHECK(automatic({{kModule + "weight", Dtype::kBF16},
                   {kModule + "bias", Dtype::kF32},
                   {"model.norm.weight", Dtype::kF32}}) == mx::float16);
}

TEST_CASE("where projections are in bytes, norms decide the type of keys and values") {
  for (const auto& [type, kv] :
       {std::pair(Dtype::kF32, mx::float32), std::pair(Dtype::kBF16, mx::float16)})
    CHECK(automatic({{kModule + "weight", Dtype::kU32},
                     {kModule + "scales", Dtype::kU8},
                     {"model.norm.weight", type}}) == kv);
}

TEST_CASE("who asks for a type gets it") {
  const TypedCheckpoint checkpoint({{kModule + "weight", Dtype::kF32}});
  CHECK(kv_dtype(checkpoint, KvType::kF16) == mx::float16);
  CHECK(kv_dtype(checkpoint, KvType::kF32) == mx::float32);
}

TEST_CASE("a page is estimated in the type of its keys and values") {
  const TypedCheckpoint checkpoint({{"model.norm.weight", Dtype::kF32}});
  model::Description model{};
  model::Config& config = model.config;
  config.layers = 5;
  config.heads = config.kv_heads = 2;
  config.head_dim = 16;
  topology::Part part;
  part.layers = {0, 5};
  part.kv_heads = {0, 2};
  for (const uint32_t bytes : {2U, 4U}) {
    const auto need = estimate(checkpoint, model, part, {.page_tokens = 8, .kv_bytes = bytes});
    REQUIRE(need.has_value());
    CHECK(need->page == uint64_t{2} * 8 * 2 * 16 * 5 * bytes);
  }
}

}  // namespace
}  // namespace tandem::runner
