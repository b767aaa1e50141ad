#include "tensor/causal_conv.h"

#include <doctest/doctest.h>

#include <array>
#include <random>

#include "tensor/device.h"
#include "tensor/evaluator.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

/// A checkpoint of one convolution: weight [6, 1, 3] and bias [6].
class ConvCheckpoint final : public format::Checkpoint {
 public:
  ConvCheckpoint() {
    std::mt19937 random(1);
    for (float& x : values_) x = std::normal_distribution<float>()(random);
  }
  const nlohmann::json& config() const override { return config_; }
  std::vector<std::string> names() const override { return {"conv.weight", "conv.bias"}; }
  bool has(std::string_view name) const override { return name.starts_with("conv."); }
  Result<format::Tensor> describe(std::string_view name) const override {
    const auto bytes = std::as_bytes(std::span(values_));
    format::Tensor out;
    out.dtype = format::Dtype::kF32;
    out.shape = {6, 1, 3};
    out.bytes = bytes.first(72);
    if (name != "conv.bias") return out;
    out.shape = {6};
    out.bytes = bytes.last(24);
    return out;
  }
  Result<format::Tensor> tensor(std::string_view name,
                                std::optional<format::RowRange> rows) const override {
    auto out = describe(name);
    if (!rows) return out;
    const size_t row = out->bytes.size() / 6;
    const auto count = static_cast<size_t>(rows->end - rows->begin);
    out->bytes = out->bytes.subspan(static_cast<size_t>(rows->begin) * row, count * row);
    out->shape[0] = rows->end - rows->begin;
    return out;
  }
  Result<std::optional<format::Quantization>> quantization(std::string_view) const override {
    return std::optional<format::Quantization>();
  }
  uint64_t weight_bytes() const override { return sizeof(values_); }
  std::filesystem::path directory() const override { return {}; }

 private:
  nlohmann::json config_;
  std::array<float, 24> values_ = {};
};

std::vector<float> floats(const array& x) {
  return {on_host<float>(x), on_host<float>(x) + x.size()};
}

/// Output and the states of slots 0 to 3 after two steps, the second of which goes on.
std::vector<float> run_conv(Path path, const ConvShape& shape, bool has_gates) {
  use_device(mx::Device::cpu);
  Context context;
  context.path = path;
  if (context.is_fast()) context.workers = std::make_shared<kernels::WorkerPool>(1);
  const Weights w(std::make_shared<ConvCheckpoint>(), context, {}, {});
  const CausalConv conv(w / "conv", shape);
  const int width = static_cast<int>(shape.width());
  const StatePart part = {.offset = 2, .floats = conv.state_floats()};
  StatePool pool = make_state_pool(4, part.floats + 5);
  std::mt19937 random(2);
  std::vector<float> out;
  const auto run = [&](std::vector<StepRow> rows) {
    const Step step(std::move(rows), 4);
    const auto input = [&] {
      std::vector<float> values(step.tokens() * shape.width());
      for (float& x : values) x = std::normal_distribution<float>()(random);
      return from_host(values, {static_cast<int>(step.tokens()), width});
    };
    GatedChannels in{.x = input()};
    if (has_gates) in.gate = input();
    if (has_gates) in.out_gate = input();
    const array y = conv(pool, part, in, step);
    if (context.is_fast()) {
      run_graph(y);
      run_graph(pool.order);
    } else {
      mx::eval({y, pool.order});
    }
    const auto values = floats(y);
    out.insert(out.end(), values.begin(), values.end());
  };
  run({{.tokens = {1, 2, 3, 4}, .pages = {0}, .saves = {{1, 2}, {4, 0}, {4, 3}}},
       {.tokens = {1}, .pages = {1}, .saves = {{1, 1}}}});
  run({{.start = 1, .tokens = {5}, .pages = {1}, .state = 1, .saves = {{1, 1}}},
       {.start = 4, .tokens = {5, 6}, .pages = {0, 2}, .state = 0, .saves = {{2, 0}}}});
  const array states = mx::slice(pool.states, {0, 2}, {4, 2 + static_cast<int>(part.floats)});
  const array own = mx::contiguous(states);
  mx::eval(own);
  const auto values = floats(own);
  out.insert(out.end(), values.begin(), values.end());
  return out;
}

TEST_CASE("causal conv: both paths agree on outputs and states, of all channels and of some") {
  using Ranges = std::vector<topology::Range>;
  for (const Ranges& channels : {Ranges{{0, 6}}, Ranges{{2, 5}}, Ranges{{0, 1}, {3, 6}}}) {
    const bool has_gates = channels.size() == 1;
    const ConvShape shape = {.taps = 3, .channels = channels, .has_silu = !has_gates};
    const auto fast = run_conv(Path::kFast, shape, has_gates);
    const auto plain = run_conv(Path::kPlain, shape, has_gates);
    REQUIRE(fast.size() == plain.size());
    for (size_t i = 0; i < fast.size(); ++i)
      CHECK(fast[i] == doctest::Approx(plain[i]).epsilon(1e-5));
  }
}

TEST_CASE("causal conv: some channels are computed as among all") {
  const ConvShape all = {.taps = 3, .channels = {{0, 6}}};
  const ConvShape parts = {.taps = 3, .channels = {{0, 2}, {2, 6}}};
  CHECK(run_conv(Path::kFast, all, false) == run_conv(Path::kFast, parts, false));
}

TEST_CASE("causal conv: a weight of other taps, and columns of other channels, are refused") {
  const Weights w(std::make_shared<ConvCheckpoint>(), Context{}, {}, {});
  CHECK_THROWS_AS(CausalConv(w / "conv", {.taps = 4, .channels = {{0, 6}}}), LoadFailure);
  const CausalConv conv(w / "conv", {.taps = 3, .channels = {{0, 6}}});
  StatePool pool = make_state_pool(2, conv.state_floats());
  const Step step({{.tokens = {1}, .pages = {0}}}, 4);
  const array x = mx::zeros({1, 5});
  CHECK_THROWS_AS(conv(pool, {.floats = 12}, {.x = x}, step), std::invalid_argument);
}

}  // namespace
}  // namespace tandem::tensor
