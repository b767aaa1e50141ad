// AWQ, GPTQ and compressed-tensors: what their packers wrote is what the affine layout says.
#include <doctest/doctest.h>

#include <cmath>

#include "format/half.h"
#include "format/layouts/published.h"
#include "format/testdata/packers.h"

namespace tandem::format {
namespace {

using Packed = std::shared_ptr<MemoryCheckpoint>;

Packed packed_with(nlohmann::json method) {
  return std::make_shared<MemoryCheckpoint>(
      nlohmann::json{{"model_type", "llama"}, {"quantization_config", std::move(method)}});
}

Packed awq(const IntegerWeights& w) {
  auto out = packed_with({{"quant_method", "awq"}, {"bits", 4}, {"version", "gemm"}});
  pack_awq(*out, "a.q_proj", w);
  return out;
}

Packed gptq(const IntegerWeights& w, uint32_t zero_offset = 1) {
  auto out = packed_with({{"quant_method", "gptq"},
                          {"bits", w.bits},
                          {"checkpoint_format", zero_offset == 1 ? "gptq" : "gptq_v2"}});
  pack_gptq(*out, "a.q_proj", w, zero_offset);
  return out;
}

Packed compressed(const IntegerWeights& w, bool has_zeros) {
  auto out = packed_with({{"quant_method", "compressed-tensors"},
                          {"format", "pack-quantized"},
                          {"config_groups", {{"group_0", {{"weights", {{"num_bits", w.bits}}}}}}}});
  pack_compressed(*out, "a.q_proj", w, has_zeros);
  return out;
}

std::string refusal_of(const Packed& checkpoint) {
  const auto out = published_layout(checkpoint);
  if (out) return "";
  CHECK(out.error().code != ErrorCode::kNotFound);
  return out.error().message;
}

/// Rows of the module as the affine layout defines them: code * scale + bias.
std::vector<float> rows_of(const Checkpoint& from, RowRange rows) {
  const auto kind = from.quantization("a.q_proj");
  REQUIRE(kind.has_value());
  REQUIRE(kind->has_value());
  const auto weight = from.tensor("a.q_proj.weight", rows);
  const auto scales = from.tensor("a.q_proj.scales", rows);
  const auto biases = from.tensor("a.q_proj.biases", rows);
  REQUIRE_MESSAGE(weight.has_value(), weight.error().message);
  REQUIRE(scales.has_value());
  REQUIRE(biases.has_value());
  CHECK(weight->dtype == Dtype::kU32);
  CHECK(scales->dtype == Dtype::kF16);
  const auto words = elements_of<uint32_t>(*weight);
  const auto s = elements_of<uint16_t>(*scales), b = elements_of<uint16_t>(*biases);
  const auto bits = static_cast<size_t>((*kind)->bits);
  const auto width = static_cast<size_t>(weight->shape[1]);
  const auto groups = static_cast<size_t>(scales->shape[1]);
  const size_t inputs = width * 32 / bits;
  CHECK(inputs == groups * static_cast<size_t>((*kind)->group_size));
  std::vector<float> out;
  for (size_t o = 0; o < static_cast<size_t>(weight->shape[0]); ++o)
    for (size_t i = 0; i < inputs; ++i) {
      uint32_t code = 0;
      for (size_t k = 0; k < bits; ++k) {
        const size_t bit = i * bits + k;
        code |= (words[o * width + bit / 32] >> (bit % 32) & 1U) << k;
      }
      const size_t at = o * groups + i * groups / inputs;
      out.push_back(static_cast<float>(code) * from_half(s[at]) + from_half(b[at]));
    }
  return out;
}

/// Compares all rows, and some that begin and end inside words.
void check_values(const Packed& packed, const IntegerWeights& w) {
  const auto opened = published_layout(packed);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->names() ==
        std::vector<std::string>{"a.q_proj.biases", "a.q_proj.scales", "a.q_proj.weight"});
  const auto rows = static_cast<int64_t>(w.outputs);
  for (const RowRange range : {RowRange{0, rows}, RowRange{3, rows - 6}, RowRange{8, 9}}) {
    std::vector<float> expected;
    for (int64_t o = range.begin; o < range.end; ++o)
      for (size_t i = 0; i < w.inputs; ++i) expected.push_back(w.value(static_cast<size_t>(o), i));
    CHECK(rows_of(**opened, range) == expected);
  }
  const auto described = (*opened)->describe("a.q_proj.weight");
  CHECK(described->shape == (*opened)->tensor("a.q_proj.weight")->shape);
  CHECK(!(*opened)->tensor("a.q_proj.scales", RowRange{1, rows + 1}));
}

TEST_CASE("awq: zeros of each group, and eight outputs of a word in their order") {
  for (const size_t group : {32, 64, 128, 256})
    check_values(awq(random_integers({24, 512, group}, false, group)),
                 random_integers({24, 512, group}, false, group));
}

TEST_CASE("gptq: 2, 3, 4 and 8 bits, zeros less one in the first version and whole in the second") {
  for (const size_t bits : {2, 3, 4, 8})
    for (const uint32_t offset : {0U, 1U}) {
      CAPTURE(bits);
      CAPTURE(offset);
      const auto w = random_integers({64, 256, 128, bits}, false, bits);
      check_values(gptq(w, offset), w);
    }
}

TEST_CASE("gptq: bits and groups are those of the tensors, also of one group for each output") {
  const auto w = random_integers({32, 384, 384, 8}, true, 5);
  const auto packed = gptq(w);
  packed->edit_config()["quantization_config"]["bits"] = 4;  // of other modules
  check_values(packed, w);
  packed->edit_config()["quantization_config"]["bits"] = 8;
  packed->remove("a.q_proj.g_idx");
  check_values(packed, w);
}

TEST_CASE("inputs out of the order of their groups are shown dense, with a notice") {
  const auto w = random_integers({32, 128, 64}, true, 1);
  std::vector<int32_t> index;
  for (int32_t i = 0; i < 128; ++i) index.push_back(i % 5 % 2);
  std::vector<uint16_t> expected;
  for (size_t o = 5; o < 30; ++o)
    for (size_t i = 0; i < 128; ++i) {
      const auto g = static_cast<size_t>(index[i]);
      const float steps = static_cast<float>(w.code(o, i)) - static_cast<float>(w.zero(o, g));
      expected.push_back(half_of(steps * w.scale(o, g)));
    }
  using Named = std::pair<Packed, const char*>;
  for (const auto& [packed, name] :
       {Named{gptq(w), "a.q_proj.g_idx"}, {compressed(w, false), "a.q_proj.weight_g_idx"}}) {
    packed->put(name, Dtype::kI32, {128}, index);
    const auto opened = published_layout(packed);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->names() == std::vector<std::string>{"a.q_proj.weight"});
    CHECK(!(*opened)->quantization("a.q_proj")->has_value());
    CHECK((*opened)->notice().find("desc_act") != std::string::npos);
    const auto got = (*opened)->tensor("a.q_proj.weight", RowRange{5, 30});
    REQUIRE_MESSAGE(got.has_value(), got.error().message);
    CHECK(got->dtype == Dtype::kF16);
    CHECK(got->shape == std::vector<int64_t>{25, 128});
    CHECK(elements_of<uint16_t>(*got) == expected);
    auto wrong = index;
    wrong[7] = 2;
    packed->put(name, Dtype::kI32, {128}, wrong);
    CHECK(refusal_of(packed).starts_with(std::string(name) + ": input 7 is of group 2, of 2"));
  }
}

TEST_CASE("compressed-tensors: packed codes of 4 and 8 bits, with and without zeros") {
  for (const size_t bits : {4, 8})
    for (const bool is_symmetric : {true, false}) {
      CAPTURE(bits);
      const auto w = random_integers({20, 256, 32, bits}, is_symmetric, bits);
      const auto packed = compressed(w, !is_symmetric);
      packed->edit_config()["quantization_config"]["config_groups"]["others"] = {
          {"weights", {{"num_bits", 12 - bits}, {"type", "float"}}}};
      check_values(packed, w);
    }
}

TEST_CASE("compressed-tensors: zeros and weights that are bytes") {
  const auto w = random_integers({20, 128, 128, 8}, false, 9);
  std::vector<int8_t> zeros, bytes;
  std::vector<uint16_t> scales;
  for (size_t o = 0; o < w.outputs; ++o) {
    zeros.push_back(static_cast<int8_t>(static_cast<int>(w.zero(o, 0)) - 128));
    scales.push_back(half_of(w.scale(o, 0)));
    for (size_t i = 0; i < w.inputs; ++i)
      bytes.push_back(static_cast<int8_t>(static_cast<int>(w.code(o, i)) - 128));
  }
  const auto packed = compressed(w, false);
  packed->put("a.q_proj.weight_zero_point", Dtype::kI8, {20, 1}, zeros);
  check_values(packed, w);
  for (const char* leaf : {"weight_packed", "weight_shape"})
    packed->remove(std::string("a.q_proj.") + leaf);
  packed->put("a.q_proj.weight", Dtype::kI8, {20, 128}, bytes);
  packed->edit_config()["quantization_config"]["format"] = "int-quantized";
  check_values(packed, w);
}

TEST_CASE("biases are rounded to the scales' type once, as the reference's") {
  auto w = random_integers({8, 32, 32}, false, 3);
  for (size_t o = 0; o < w.outputs; ++o) {
    w.zeros[o] = 11 + static_cast<uint32_t>(o % 4);
    w.scales[o] = from_half(static_cast<uint16_t>(0x1555 + 7 * o));
  }
  const auto opened = published_layout(awq(w));
  REQUIRE(opened.has_value());
  const auto biases = elements_of<uint16_t>(*(*opened)->tensor("a.q_proj.biases"));
  for (size_t o = 0; o < w.outputs; ++o) {
    const double exact = -static_cast<double>(w.zeros[o]) * static_cast<double>(w.scales[o]);
    const double unit = std::ldexp(1.0, std::ilogb(exact) - 10);
    CHECK(std::fabs(static_cast<double>(from_half(biases[o])) - exact) <= unit / 2);
  }
}

TEST_CASE("scales of activations and caches are left out, biases and other tensors stay") {
  const auto packed = compressed(random_integers({16, 64, 32}, true, 2), false);
  const std::vector<float> one = {1};
  for (const char* name : {"a.q_proj.input_scale", "a.k_scale", "a.norm.weight", "a.q_proj.bias"})
    packed->put(name, Dtype::kF32, {1}, one);
  const auto opened = published_layout(packed);
  REQUIRE(opened.has_value());
  CHECK((*opened)->names() == std::vector<std::string>{"a.norm.weight", "a.q_proj.bias",
                                                       "a.q_proj.biases", "a.q_proj.scales",
                                                       "a.q_proj.weight"});
  CHECK(!(*opened)->quantization("a.norm")->has_value());
}

TEST_CASE("damaged checkpoints of integers are refused by the name of a tensor") {
  const auto w = random_integers({32, 128, 32}, true, 4);
  const auto starts = [](const Packed& packed, const char* name) {
    const std::string message = refusal_of(packed);
    CAPTURE(message);
    CHECK(message.find(name) != std::string::npos);
  };
  using Shape = std::vector<int64_t>;
  const auto reshaped = [](const Packed& packed, const char* leaf, const Shape& shape) {
    packed->reshape(std::string("a.q_proj.") + leaf, shape);
    return packed;
  };
  starts(reshaped(awq(w), "qweight", {128, 5}), "a.q_proj.qweight should be I32 [128, 4]");
  starts(reshaped(awq(w), "qzeros", {4, 3}), "a.q_proj.qzeros should be I32 [4, 4]");
  starts(reshaped(awq(w), "scales", {3, 32}), "a.q_proj.qzeros");
  starts(reshaped(awq(w), "scales", {128}), "a.q_proj.qweight");
  starts(reshaped(awq(w), "scales", {4, 36}), "a.q_proj.qweight");
  starts(reshaped(gptq(w), "qweight", {16, 31}), "a.q_proj.qweight should be I32 [16, 32]");
  starts(reshaped(gptq(w), "g_idx", {127}), "a.q_proj.qweight");
  starts(reshaped(gptq(w), "g_idx", {0}), "a.q_proj.qweight");
  starts(reshaped(gptq(w), "qzeros", {4, 5}), "a.q_proj.qzeros should be I32 [4, 4]");
  starts(reshaped(gptq(w), "scales", {0, 32}), "a.q_proj");
  starts(reshaped(compressed(w, true), "weight_scale", {31, 4}), "a.q_proj.weight_scale");
  starts(reshaped(compressed(w, true), "weight_zero_point", {4, 3}), "a.q_proj.weight_zero_point");
  starts(reshaped(compressed(w, true), "weight_packed", {512}), "a.q_proj.weight_packed");
  for (const char* leaf : {"scales", "qzeros"}) {
    const auto lacking = gptq(w);
    lacking->remove(std::string("a.q_proj.") + leaf);
    const auto opened = published_layout(lacking);
    REQUIRE(!opened.has_value());
    CHECK(opened.error().message.find(std::string("a.q_proj.") + leaf) != std::string::npos);
  }
  const auto other = compressed(w, false);
  other->put("a.q_proj.weight_shape", Dtype::kI64, {2}, std::vector<int64_t>{32, 127});
  const auto opened = published_layout(other);
  REQUIRE(opened.has_value());
  CHECK((*opened)->tensor("a.q_proj.weight").error().message.starts_with("a.q_proj.weight_shape"));
}

TEST_CASE("groups, bits and versions that are not read are refused by name") {
  const auto has = [](const Packed& packed, const char* part) {
    const std::string message = refusal_of(packed);
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
    CHECK(message.find("mlx_lm.convert") != std::string::npos);
  };
  has(awq(random_integers({16, 64, 16}, true, 1)), "a.q_proj: groups of 16 inputs");
  const auto w = random_integers({16, 64, 32}, true, 1);
  const auto with = [](const Packed& packed, const char* key, nlohmann::json value) {
    packed->edit_config()["quantization_config"][key] = std::move(value);
    return packed;
  };
  has(with(awq(w), "version", "gemv"), "version \"gemv\" of AWQ");
  has(with(awq(w), "bits", 8), "bits 8 of AWQ");
  has(with(gptq(w), "bits", 5), "bits 5 of GPTQ");
  has(with(gptq(w), "checkpoint_format", "marlin"), "checkpoint_format \"marlin\"");
  has(with(compressed(w, false), "format", "nvfp4-pack-quantized"), "\"nvfp4-pack-quantized\"");
  has(with(compressed(w, false), "config_groups", {{"g", {{"weights", {{"num_bits", 3}}}}}}),
      "weights of 3 bits");
  has(with(compressed(w, false), "sparsity_config", {{"format", "sparse-24-bitmask"}}),
      "\"sparse-24-bitmask\"");
  for (const char* method : {"bitsandbytes", "hqq", "eetq", "bitnet", "mxfp4", "quanto"}) {
    has(packed_with({{"quant_method", method}}), method);
    has(packed_with({{"quant_method", method}}), "awq, gptq and compressed-tensors");
  }
  has(packed_with({{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}), "NVFP4");
  has(packed_with({{"bits", 4}}), "quant_method null");
}

TEST_CASE("mlx-lm's own checkpoints stay what they are, whatever else their config says") {
  const auto packed = awq(random_integers({16, 64, 32}, true, 1));
  packed->edit_config()["quantization"] = {{"bits", 4}, {"group_size", 64}};
  CHECK(*published_layout(packed) == packed);
}

}  // namespace
}  // namespace tandem::format
