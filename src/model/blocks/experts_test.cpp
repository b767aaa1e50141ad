#include "model/blocks/experts.h"

#include <doctest/doctest.h>

#include <random>

#include "model/arch.h"
#include "model/random_checkpoint_test.h"
#include "tensor/evaluator.h"
#include "tensor/host.h"

namespace tandem::model {
namespace {

namespace mx = tensor::mx;
using Floats = std::vector<float>;

const RandomOptions kOptions = {.model_type = "qwen3_moe", .experts = 12, .experts_of_token = 3};

/// The experts of layer 0 with `columns` of each.
ExpertMlp load_block(std::shared_ptr<const RandomCheckpoint> checkpoint,
                     const tensor::Context& context,
                     topology::Range columns) {
  const Config config = describe(*checkpoint)->config;
  topology::Part part;
  part.expert_mlp = columns;
  const tensor::Weights w(checkpoint, context, config.shape(), part);
  const bool is_oss = config.model_type == "gpt_oss";
  return ExpertMlp(w / "model" / "layers" / 0 / "mlp", config,
                   {.router = is_oss ? "router" : "gate"});
}

ExpertMlp load_block(const RandomOptions& o,
                     const tensor::Context& context,
                     topology::Range columns) {
  return load_block(std::make_shared<RandomCheckpoint>(o), context, columns);
}

tensor::Context fast(kernels::CpuLevel level = kernels::detect_cpu_level()) {
  tensor::Context context;
  context.path = tensor::Path::kFast;
  context.workers = std::make_shared<kernels::WorkerPool>(2, level);
  return context;
}

Floats random_rows(size_t rows, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats out(rows * kOptions.hidden);
  for (float& x : out) x = normal(random);
  return out;
}

Floats output_of(const ExpertMlp& block, const Floats& x) {
  const int hidden = static_cast<int>(kOptions.hidden);
  tensor::array y = block(tensor::from_host(x, {static_cast<int>(x.size()) / hidden, hidden}));
  tensor::run_graph(y);
  return {tensor::on_host<float>(y), tensor::on_host<float>(y) + y.size()};
}

float most_apart(const Floats& a, const Floats& b) {
  REQUIRE(a.size() == b.size());
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]));
  return most;
}

RandomOptions with_bits(int bits) {
  RandomOptions o = kOptions;
  o.bits = bits;
  return o;
}

TEST_CASE("experts: every CPU level computes what MLX's own operations do") {
  const Floats x = random_rows(19, 1);
  for (const int bits : {0, 4, 8}) {
    const Floats expected = output_of(load_block(with_bits(bits), {}, {0, 64}), x);
    CHECK(most_apart(expected, Floats(expected.size())) > 0.5F);
    for (const kernels::CpuLevel level : kernels::cpu_levels()) {
      CAPTURE(kernels::name(level));
      CHECK(most_apart(output_of(load_block(with_bits(bits), fast(level), {0, 64}), x), expected) <
            2e-5F);
    }
  }
}

/// gpt-oss': biases, and a gate of its own.
RandomOptions oss_with(format::QuantMode mode, bool is_in_halves) {
  RandomOptions o = kOptions;
  o.model_type = "gpt_oss";
  o.bits = mode == format::QuantMode::kMxfp8 ? 8 : 4;
  o.group = mode == format::QuantMode::kNvfp4 ? 16 : 32;
  o.mode = mode;
  o.is_in_halves = is_in_halves;
  return o;
}

constexpr format::QuantMode kMicroScaled[] = {format::QuantMode::kMxfp4, format::QuantMode::kMxfp8,
                                              format::QuantMode::kNvfp4};

TEST_CASE("experts: micro-scaled ones with biases are what MLX computes, at every CPU level") {
  const Floats x = random_rows(19, 5);
  for (const format::QuantMode mode : kMicroScaled)
    for (const bool is_in_halves : {false, true}) {
      CAPTURE(format::name(mode));
      CAPTURE(is_in_halves);
      const RandomOptions o = oss_with(mode, is_in_halves);
      const Floats expected = output_of(load_block(o, {}, {0, 64}), x);
      const float size = most_apart(expected, Floats(expected.size()));
      CHECK(size > 0.5F);
      for (const kernels::CpuLevel level : kernels::cpu_levels()) {
        CAPTURE(kernels::name(level));
        CHECK(most_apart(output_of(load_block(o, fast(level), {0, 64}), x), expected) <
              size * (is_in_halves ? 1e-4F : 1e-5F));  // row codes of 16 bits there
      }
    }
}

TEST_CASE("experts: over ranks, each bias is added once") {
  const Floats x = random_rows(9, 6);
  for (const tensor::Context& context : {fast(), tensor::Context{}}) {
    const RandomOptions o = oss_with(format::QuantMode::kMxfp4, false);
    const Floats whole = output_of(load_block(o, context, {0, 64}), x);
    Floats sum = output_of(load_block(o, context, {0, 32}), x);
    const Floats rest = output_of(load_block(o, context, {32, 64}), x);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += rest[i];
    CHECK(most_apart(sum, whole) < 5e-5F);
  }
}

TEST_CASE("experts: a token's bits do not depend on the others of the step") {
  const Floats x = random_rows(40, 2);
  const ExpertMlp block = load_block(with_bits(4), fast(), {0, 64});
  const Floats together = output_of(block, x);
  for (size_t r = 0; r < 40; ++r) {
    const auto at = static_cast<ptrdiff_t>(r * kOptions.hidden);
    const auto end = at + static_cast<ptrdiff_t>(kOptions.hidden);
    CHECK(output_of(block, {x.begin() + at, x.begin() + end}) ==
          Floats(together.begin() + at, together.begin() + end));
  }
}

TEST_CASE("experts: stacked or one by one, a checkpoint gives the same bits") {
  const Floats x = random_rows(7, 3);
  for (const int bits : {0, 4})
    for (const tensor::Context& context : {fast(), tensor::Context{}}) {
      RandomOptions o = with_bits(bits);
      const Floats stacked = output_of(load_block(o, context, {0, 64}), x);
      o.stacks_experts = false;
      CHECK(output_of(load_block(o, context, {0, 64}), x) == stacked);
    }
}

TEST_CASE("experts: parts of columns add up to the whole, and none gives zeros") {
  const Floats x = random_rows(9, 4);
  for (const int bits : {0, 4})
    for (const tensor::Context& context : {fast(), tensor::Context{}}) {
      const RandomOptions o = with_bits(bits);
      const Floats whole = output_of(load_block(o, context, {0, 64}), x);
      Floats sum = output_of(load_block(o, context, {0, 32}), x);
      const Floats rest = output_of(load_block(o, context, {32, 64}), x);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += rest[i];
      CHECK(most_apart(sum, whole) < 2e-5F);
      CHECK(output_of(load_block(o, context, {}), x) == Floats(x.size()));
    }
}

/// Why a checkpoint's experts cannot be loaded; empty when they can.
std::string refusal(std::shared_ptr<const RandomCheckpoint> checkpoint, topology::Range columns) {
  try {
    load_block(std::move(checkpoint), fast(), columns);
  } catch (const tensor::LoadFailure& failure) {
    return failure.what();
  }
  return "";
}

bool names(const std::string& message, const char* what) {
  return message.find(what) != std::string::npos;
}

TEST_CASE("experts: a cut inside a quantization group, or a tensor that does not fit, is named") {
  RandomOptions o = with_bits(4);
  o.stacks_experts = false;
  const auto made = [&o] { return std::make_shared<RandomCheckpoint>(o); };
  CHECK(refusal(made(), {0, 64}).empty());
  CHECK(names(refusal(made(), {0, 48}), "down_proj: columns 0 to 48"));
  const auto dense = made();
  dense->remove("model.layers.0.mlp.experts.3.up_proj.scales");
  CHECK(names(refusal(dense, {0, 64}), "experts.3.up_proj"));
  const auto lacking = made();
  lacking->remove("model.layers.0.mlp.experts.5.down_proj.biases");
  CHECK(names(refusal(lacking, {0, 64}), "experts.5.down_proj.biases"));
  const auto wider = made();
  wider->set("moe_intermediate_size", 128);
  CHECK(names(refusal(wider, {0, 128}), "an expert is not [128, 64]"));
}

TEST_CASE("experts: tensors of another number of experts than num_experts are refused") {
  const auto refused = [](const RandomOptions& o, uint32_t experts, const char* removed) {
    RandomCheckpoint checkpoint(o);
    checkpoint.set("num_experts", experts);
    checkpoint.remove(removed);
    const auto model = describe(checkpoint);
    return model ? std::string() : model.error().message;
  };
  const char* router = "model.layers.0.mlp.gate.weight";
  for (const int bits : {0, 4})
    for (const bool stacks : {true, false}) {
      RandomOptions o = with_bits(bits);
      o.stacks_experts = stacks;
      CHECK(refused(o, 12, "").empty());
      CHECK(names(refused(o, 8, ""), "num_experts is 8"));
      CHECK(names(refused(o, 16, ""), "num_experts is 16"));
      CHECK(names(refused(o, 16, ""), "model.layers.0.mlp.gate"));
    }
  RandomOptions o = kOptions;
  CHECK(names(refused(o, 8, router), "switch_mlp.down_proj.weight is of 12"));
  o.stacks_experts = false;
  CHECK(names(refused(o, 11, router), "there is model.layers.0.mlp.experts.11.down_proj.weight"));
  RandomCheckpoint mixers({.model_type = "nemotron_h", .layers = 3});
  REQUIRE(describe(mixers).has_value());
  mixers.set("n_routed_experts", 7);
  CHECK(names(describe(mixers).error().message, "model.layers.2.mixer.gate."));
}

}  // namespace
}  // namespace tandem::model
