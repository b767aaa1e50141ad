// Models as their publishers quantize them, beside twins in layouts that are read as they are.
#include <doctest/doctest.h>

#include <bit>
#include <functional>

#include "format/half.h"
#include "format/testdata/packers.h"
#include "model/random_checkpoint_test.h"
#include "runner/memory.h"
#include "runner/ranks_test.h"

namespace tandem::runner {
namespace {

using format::Dtype;
using format::IntegerWeights;
using format::MemoryCheckpoint;
using model::RandomOptions;
using Json = nlohmann::json;
using Checkpoint = std::shared_ptr<const format::Checkpoint>;

constexpr size_t kGroup = 32;

/// Writes one matrix.
using Packer =
    std::function<void(MemoryCheckpoint&, const std::string& module, const IntegerWeights&)>;

RandomOptions options_of(const char* model_type) {
  return {.model_type = model_type,
          .layers = 2,
          .dense_layer = 2,
          .stacks_experts = false,
          .has_tied_head = false};
}

/// A random model whose projections are integers, written by `pack`.
std::shared_ptr<MemoryCheckpoint> packed_model(
    const RandomOptions& o, const Json& keys, size_t bits, bool is_symmetric, const Packer& pack) {
  const model::RandomCheckpoint random(o);
  Json config = random.config();
  config.update(keys);
  auto out = std::make_shared<MemoryCheckpoint>(config);
  for (const std::string& name : random.names()) {
    const auto tensor = random.tensor(name);
    if (!name.ends_with("_proj.weight")) {
      out->put(name, tensor->dtype, tensor->shape, format::elements_of<float>(*tensor));
      continue;
    }
    const IntegerWeights shape{static_cast<size_t>(tensor->shape[0]),
                               static_cast<size_t>(tensor->shape[1]), kGroup, bits};
    pack(*out, name.substr(0, name.rfind('.')),
         format::random_integers(shape, is_symmetric, std::hash<std::string>()(name)));
  }
  return out;
}

Checkpoint opened(std::shared_ptr<MemoryCheckpoint> stored) {
  auto out = format::as_read(std::move(stored));
  REQUIRE_MESSAGE(out.has_value(), out.error().message);
  return *out;
}

/// A dense twin in float32.
void pack_dense(MemoryCheckpoint& to, const std::string& module, const IntegerWeights& w) {
  std::vector<float> values;
  for (size_t o = 0; o < w.outputs; ++o)
    for (size_t i = 0; i < w.inputs; ++i) values.push_back(w.value(o, i));
  to.put(module + ".weight", Dtype::kF32,
         {static_cast<int64_t>(w.outputs), static_cast<int64_t>(w.inputs)}, values);
}

void pack_affine_twin(MemoryCheckpoint& to, const std::string& module, const IntegerWeights& w) {
  format::pack_affine(to, module, w, kGroup);
}

std::vector<Logits> logits_over(const Checkpoint& checkpoint, uint32_t ranks = 1) {
  const Tokens tokens = random_tokens(12, 101, 3);
  const auto outcome =
      run_ranks({.checkpoint = checkpoint, .ranks = ranks}, chunked_plans(tokens, 5, 64, 4));
  REQUIRE_MESSAGE(outcome.errors.empty(), outcome.errors[0].message);
  return outcome.logits;
}

float most_apart(const std::vector<Logits>& a, const std::vector<Logits>& b) {
  REQUIRE(a.size() == b.size());
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, largest_difference(a[i], b[i]));
  return most;
}

/// What a lone rank holds.
topology::Part whole_part(const model::Description& model) {
  const auto parts = topology::place(model.config.shape(), topology::Split::kTensor, 1);
  REQUIRE(parts.has_value());
  return parts->at(0);
}

struct Layout {
  const char* name;
  Json method;
  size_t bits;
  bool is_symmetric;
  Packer pack;
};

std::vector<Layout> integer_layouts() {
  const Json compressed = {{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"}};
  return {{"awq", {{"quant_method", "awq"}, {"version", "gemm"}}, 4, false, format::pack_awq},
          {"gptq 4",
           {{"quant_method", "gptq"}, {"bits", 4}},
           4,
           false,
           [](auto& to, auto& name, auto& w) { format::pack_gptq(to, name, w); }},
          {"gptq 8",
           {{"quant_method", "gptq"}, {"bits", 8}},
           8,
           true,
           [](auto& to, auto& name, auto& w) { format::pack_gptq(to, name, w); }},
          {"compressed", compressed, 4, true,
           [](auto& to, auto& name, auto& w) { format::pack_compressed(to, name, w, false); }},
          {"compressed with zeros", compressed, 4, false,
           [](auto& to, auto& name, auto& w) { format::pack_compressed(to, name, w, true); }}};
}

Json affine(size_t bits) { return {{"quantization", {{"bits", bits}, {"group_size", kGroup}}}}; }

TEST_CASE(
    "integers of publishers give the logits of the same model in mlx-lm's layout, to the bit") {
  for (const char* type : {"llama", "qwen3", "qwen3_moe"})
    for (const Layout& layout : integer_layouts()) {
      CAPTURE(type);
      CAPTURE(layout.name);
      const RandomOptions o = options_of(type);
      const auto model = opened(packed_model(o, {{"quantization_config", layout.method}},
                                             layout.bits, layout.is_symmetric, layout.pack));
      const auto twin = opened(
          packed_model(o, affine(layout.bits), layout.bits, layout.is_symmetric, pack_affine_twin));
      const auto logits = logits_over(model);
      CHECK(logits == logits_over(twin));
      if (type == std::string_view("qwen3_moe")) continue;  // near ties choose other experts
      const auto dense =
          opened(packed_model(o, Json::object(), layout.bits, layout.is_symmetric, pack_dense));
      CHECK(most_apart(logits, logits_over(dense)) < 5e-3F);  // rows of activations in 16 bits
    }
}

TEST_CASE("integers of publishers are cut between ranks as those of mlx-lm are") {
  for (const char* type : {"qwen3", "qwen3_moe"})
    for (const Layout& layout : integer_layouts()) {
      CAPTURE(layout.name);
      const auto model =
          opened(packed_model(options_of(type), {{"quantization_config", layout.method}},
                              layout.bits, layout.is_symmetric, layout.pack));
      for (const uint32_t ranks : {2U, 3U})
        CHECK(most_apart(logits_over(model, ranks), logits_over(model)) < 5e-4F);
    }
}

/// Codes of E4M3 and a scale for each block of 128 by 128; `out` gets what they stand for.
struct Fp8Weights {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  std::vector<uint16_t> values;  // bfloat16
};

Fp8Weights random_fp8(const std::vector<int64_t>& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto rows = static_cast<size_t>(shape[0]), columns = static_cast<size_t>(shape[1]);
  const size_t across = (columns + 127) / 128;
  Fp8Weights out;
  const float size = std::sqrt(1.0F / static_cast<float>(columns)) / 128;
  for (size_t i = 0; i < (rows + 127) / 128 * across; ++i)
    out.scales.push_back(size * (1 + static_cast<float>(random() % 1000) / 999));
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) {
      const auto code = static_cast<uint8_t>((random() % 2) << 7 | random() % 0x78);  // up to 240
      const uint32_t bits = (code & 0x80U) << 24 | (code & 0x7fU) << 20;
      const float value = std::bit_cast<float>(bits) * std::ldexp(1.0F, 120);
      out.codes.push_back(code);
      out.values.push_back(format::to_bfloat16(value * out.scales[r / 128 * across + c / 128]));
    }
  return out;
}

/// A random model in float32 whose projections are FP8, and its twin in bfloat16.
std::pair<Checkpoint, Checkpoint> fp8_and_twin(const RandomOptions& o) {
  const model::RandomCheckpoint random(o);
  Json config = random.config();
  auto twin = std::make_shared<MemoryCheckpoint>(config);
  config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  auto packed = std::make_shared<MemoryCheckpoint>(config);
  for (const std::string& name : random.names()) {
    const auto tensor = random.tensor(name);
    if (!name.ends_with("_proj.weight")) {
      for (auto* to : {packed.get(), twin.get()})
        to->put(name, tensor->dtype, tensor->shape, format::elements_of<float>(*tensor));
      continue;
    }
    const auto w = random_fp8(tensor->shape, std::hash<std::string>()(name));
    packed->put(name, Dtype::kF8E4M3, tensor->shape, w.codes);
    packed->put(name + "_scale_inv", Dtype::kF32,
                {(tensor->shape[0] + 127) / 128, (tensor->shape[1] + 127) / 128}, w.scales);
    twin->put(name, Dtype::kBF16, tensor->shape, w.values);
  }
  return {opened(packed), twin};
}

TEST_CASE("fp8 gives the logits of the dequantized model to the bit, and needs its memory") {
  for (const char* type : {"llama", "qwen3", "qwen3_moe"}) {
    CAPTURE(type);
    RandomOptions o = options_of(type);
    o.hidden = 160, o.mlp = 320, o.expert_mlp = 160;
    const auto [model, twin] = fp8_and_twin(o);
    CHECK(logits_over(model) == logits_over(twin));
    CHECK(most_apart(logits_over(model, 3), logits_over(model)) < 5e-4F);
    const auto need = [](const Checkpoint& checkpoint) {
      const auto described = model::describe(*checkpoint);
      REQUIRE(described.has_value());
      return estimate(*checkpoint, *described, whole_part(*described), {})->weights;
    };
    CHECK(need(model) == need(twin));
  }
}

/// The experts of a random model in one tensor for each layer, as transformers keeps them.
std::shared_ptr<MemoryCheckpoint> with_stacks(const model::RandomCheckpoint& random,
                                              const RandomOptions& o,
                                              bool is_transposed) {
  auto out = std::make_shared<MemoryCheckpoint>(random.config());
  for (const std::string& name : random.names())
    if (name.find(".experts.") == std::string::npos) {
      const auto tensor = random.tensor(name);
      out->put(name, tensor->dtype, tensor->shape, format::elements_of<float>(*tensor));
    }
  for (uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string block = fmt::format("model.layers.{}.mlp.experts.", layer);
    const auto rows = [&](uint32_t e, const char* name) {
      return format::elements_of<float>(
          *random.tensor(fmt::format("{}{}.{}.weight", block, e, name)));
    };
    std::vector<float> inner, outer;
    const auto append = [&](std::vector<float>& to, const std::vector<float>& matrix,
                            size_t columns) {
      if (!is_transposed) return void(to.insert(to.end(), matrix.begin(), matrix.end()));
      for (size_t c = 0; c < columns; ++c)
        for (size_t r = 0; r < matrix.size() / columns; ++r) to.push_back(matrix[r * columns + c]);
    };
    for (uint32_t e = 0; e < o.experts; ++e) {
      std::vector<float> both = rows(e, "gate_proj");
      const std::vector<float> up = rows(e, "up_proj");
      both.insert(both.end(), up.begin(), up.end());
      append(inner, both, o.hidden);
      append(outer, rows(e, "down_proj"), o.expert_mlp);
    }
    using Shape = std::vector<int64_t>;
    const int64_t twice = 2 * int64_t{o.expert_mlp};
    out->put(block + "gate_up_proj", Dtype::kF32,
             is_transposed ? Shape{o.experts, o.hidden, twice} : Shape{o.experts, twice, o.hidden},
             inner);
    out->put(block + "down_proj", Dtype::kF32,
             is_transposed ? Shape{o.experts, o.expert_mlp, o.hidden}
                           : Shape{o.experts, o.hidden, o.expert_mlp},
             outer);
  }
  return out;
}

TEST_CASE("what published layouts need is what is held of them, on both paths") {
  RandomOptions o = options_of("qwen3");
  o.hidden = 256, o.mlp = 512;
  const auto fp8 = fp8_and_twin(o).first;
  const auto of_bits = [&](size_t bits) {
    return opened(
        packed_model(o, {{"quantization_config", {{"quant_method", "gptq"}}}}, bits, true,
                     [](auto& to, auto& name, auto& w) { format::pack_gptq(to, name, w); }));
  };
  for (const auto& checkpoint : {fp8, of_bits(3), of_bits(4)})
    for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
      CAPTURE((path == tensor::Path::kFast));
      const auto runner = ModelRunner::load(checkpoint, {.path = path, .threads = 1, .pages = 8});
      REQUIRE_MESSAGE(runner.has_value(), runner.error().message);
      const auto described = model::describe(*checkpoint);
      const auto need =
          estimate(*checkpoint, *described, whole_part(*described),
                   {.element_bytes = sizeof(float), .is_packed = path == tensor::Path::kFast});
      CHECK(static_cast<double>(need->weights) ==
            doctest::Approx(static_cast<double>((*runner)->weight_bytes())).epsilon(0.03));
    }
}

TEST_CASE("experts in one tensor give the logits of experts one by one, whole and over ranks") {
  const RandomOptions o = options_of("qwen3_moe");
  const auto random = std::make_shared<model::RandomCheckpoint>(o);
  for (const bool is_transposed : {false, true}) {
    CAPTURE(is_transposed);
    const auto model = opened(with_stacks(*random, o, is_transposed));
    CHECK(logits_over(model) == logits_over(random));
    CHECK(logits_over(model, 3) == logits_over(random, 3));
  }
}

TEST_CASE("modules for predicting several tokens stay in the checkpoint, and cost nothing") {
  const RandomOptions o = options_of("qwen3");
  const auto plain = std::make_shared<model::RandomCheckpoint>(o);
  const auto more = std::make_shared<model::RandomCheckpoint>(o);
  for (const char* name :
       {"mtp.layers.0.mlp.up_proj.weight", "model.mtp.norm.weight", "model.mtp_layers.0.a.weight"})
    more->add_stray(name);
  more->set("num_nextn_predict_layers", 1);
  more->add_stray("model.layers.2.eh_proj.weight");
  CHECK(logits_over(more) == logits_over(plain));
  CHECK(more->tensor("mtp.layers.0.mlp.up_proj.weight").has_value());
  const auto need = [](const model::RandomCheckpoint& checkpoint) {
    const auto described = model::describe(checkpoint);
    REQUIRE(described.has_value());
    return estimate(checkpoint, *described, whole_part(*described), {})->weights;
  };
  CHECK(need(*more) == need(*plain));
  more->add_stray("mtpx.weight");
  const auto refused = ModelRunner::load(more, {.pages = 8});
  REQUIRE(!refused.has_value());
  CHECK(refused.error().message.find("mtpx.weight") != std::string::npos);
}

}  // namespace
}  // namespace tandem::runner
