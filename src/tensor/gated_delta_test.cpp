#include "tensor/gated_delta.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tensor/device.h"
#include "tensor/evaluator.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

constexpr uint32_t kAllHeads = 6;

/// A checkpoint of A_log, dt_bias and D, of six heads each; where each of five key channels decays
/// by itself, with its dt_bias, A_log has four axes and its decays are strong.
class DeltaCheckpoint final : public format::Checkpoint {
 public:
  explicit DeltaCheckpoint(DeltaForm form = DeltaForm::kGatedDelta)
      : has_channels_(form == DeltaForm::kChannelDelta) {
    if (!has_channels_) return;
    a_log_ = {-2, 2.7F, 0, -1.5F, 1.5F, -3};
    for (size_t i = kAllHeads; i < 5 * kAllHeads; ++i)
      dt_bias_.push_back(dt_bias_[i - kAllHeads] + 0.1F);
  }
  const nlohmann::json& config() const override { return config_; }
  std::vector<std::string> names() const override { return {"attn.A_log", "attn.dt_bias"}; }
  bool has(std::string_view name) const override { return name.starts_with("attn."); }
  Result<format::Tensor> describe(std::string_view name) const override {
    format::Tensor out;
    const std::vector<float>& values = name == "attn.A_log" ? a_log_
                                       : name == "attn.D"   ? skip_
                                                            : dt_bias_;
    out.shape = {static_cast<int64_t>(values.size())};
    if (has_channels_ && name == "attn.A_log") out.shape = {1, 1, kAllHeads, 1};
    out.bytes = std::as_bytes(std::span(values));
    return out;
  }
  Result<format::Tensor> tensor(std::string_view name,
                                std::optional<format::RowRange> rows) const override {
    auto out = describe(name);
    if (!rows) return out;
    const auto first = static_cast<size_t>(rows->begin), last = static_cast<size_t>(rows->end);
    out->bytes = out->bytes.subspan(first * sizeof(float), (last - first) * sizeof(float));
    out->shape[0] = rows->end - rows->begin;
    return out;
  }
  Result<std::optional<format::Quantization>> quantization(std::string_view) const override {
    return std::optional<format::Quantization>();
  }
  uint64_t weight_bytes() const override { return 0; }
  std::filesystem::path directory() const override { return {}; }

 private:
  nlohmann::json config_;
  bool has_channels_;
  std::vector<float> a_log_ = {-2, -1, 0, -1.5F, -0.5F, -3};
  std::vector<float> dt_bias_ = {0, 0.5F, -1, 1, 0.2F, -0.3F};
  std::vector<float> skip_ = {1, -2, 0.5F, 0, 3, 1.5F};
};

/// What heads [begin, end) of all six take in of a token, drawn from the token's number, so that
/// some heads take in what they do among all.
struct DeltaScene {
  DeltaShape shape;
  topology::Range heads;
  std::mt19937 random = std::mt19937(3);

  DeltaInputs next(size_t tokens) {
    std::vector<float> qkv, a, b;
    const uint32_t group = shape.group();
    for (size_t t = 0; t < tokens; ++t) {
      put(qkv, kAllHeads / group * shape.key_dim, heads.begin / group * shape.key_dim,
          shape.keys());
      put(qkv, kAllHeads / group * shape.key_dim, heads.begin / group * shape.key_dim,
          shape.keys());
      put(qkv, kAllHeads * shape.value_dim, heads.begin * shape.value_dim, shape.values());
      put(a, kAllHeads * shape.decays(), heads.begin * shape.decays(),
          heads.size() * shape.decays());
      put(b, kAllHeads, heads.begin, heads.size());
    }
    const int rows = static_cast<int>(tokens), own = static_cast<int>(heads.size());
    DeltaInputs out = {.qkv = from_host(qkv, {rows, static_cast<int>(shape.qkv())}),
                       .a = from_host(a, {rows, own * static_cast<int>(shape.decays())})};
    if (shape.form != DeltaForm::kSsd) out.b = from_host(b, {rows, own});
    return out;
  }

  /// Draws `all` numbers and keeps those of [first, first + count).
  void put(std::vector<float>& to, uint32_t all, uint32_t first, uint32_t count) {
    std::normal_distribution<float> normal;
    for (uint32_t i = 0; i < all; ++i) {
      const float x = normal(random);
      if (i >= first && i < first + count) to.push_back(x);
    }
  }
};

struct DeltaOutcome {
  std::vector<float> out;     // of all tokens
  std::vector<float> states;  // of slots 0 to 3
};

void append(std::vector<float>& to, const array& x) {
  to.insert(to.end(), on_host<float>(x), on_host<float>(x) + x.size());
}

/// Two steps, the second of which goes on.
DeltaOutcome run_delta(Path path, topology::Range heads, DeltaForm form = DeltaForm::kGatedDelta) {
  use_device(mx::Device::cpu);
  Context context;
  context.path = path;
  if (context.is_fast()) context.workers = std::make_shared<kernels::WorkerPool>(2);
  const Weights w(std::make_shared<DeltaCheckpoint>(form), context, {}, {});
  const DeltaShape shape = {.key_heads = heads.size() / 2,
                            .value_heads = heads.size(),
                            .key_dim = 5,
                            .value_dim = 7,
                            .form = form,
                            .least_dt = 0.3F,
                            .most_dt = 1.5F};
  const GatedDelta delta(w / "attn", shape, heads);
  const StatePart part = {.offset = 2, .floats = delta.state_floats()};
  StatePool pool = make_state_pool(4, part.floats + 5);
  DeltaScene scene{shape, heads};
  DeltaOutcome outcome;
  const auto run = [&](std::vector<StepRow> rows) {
    const Step step(std::move(rows), 4);
    const array y = delta(pool, part, scene.next(step.tokens()), step);
    if (context.is_fast()) {
      run_graph(y);
      run_graph(pool.order);
    } else {
      mx::eval({y, pool.order});
    }
    append(outcome.out, y);
  };
  run({{.tokens = {1, 2, 3, 4}, .pages = {0}, .saves = {{1, 2}, {4, 0}, {4, 3}}},
       {.tokens = {1}, .pages = {1}, .saves = {{1, 1}}}});
  run({{.start = 1, .tokens = {5}, .pages = {1}, .state = 1, .saves = {{1, 1}}},
       {.start = 4, .tokens = {5, 6}, .pages = {0, 2}, .state = 0, .saves = {{2, 0}}}});
  const array own =
      mx::contiguous(mx::slice(pool.states, {0, 2}, {4, 2 + static_cast<int>(part.floats)}));
  mx::eval(own);
  append(outcome.states, own);
  return outcome;
}

void check_near(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(std::fabs(a[i] - b[i]) <= 1e-5F);
}

TEST_CASE("gated delta: both paths agree on outputs and states, of all heads and of some") {
  for (const topology::Range heads : {topology::Range{0, 6}, topology::Range{2, 4}}) {
    const auto fast = run_delta(Path::kFast, heads), plain = run_delta(Path::kPlain, heads);
    check_near(fast.out, plain.out);
    check_near(fast.states, plain.states);
  }
}

TEST_CASE("gated delta: so they do in the other forms") {
  for (const DeltaForm form : {DeltaForm::kSsd, DeltaForm::kChannelDelta})
    for (const topology::Range heads : {topology::Range{0, 6}, topology::Range{2, 4}}) {
      CAPTURE((form == DeltaForm::kSsd));
      const auto fast = run_delta(Path::kFast, heads, form);
      const auto plain = run_delta(Path::kPlain, heads, form);
      check_near(fast.out, plain.out);
      check_near(fast.states, plain.states);
    }
}

TEST_CASE("gated delta: decays of channels make no numbers too large over a long row") {
  const auto run = [](Path path) {
    use_device(mx::Device::cpu);
    Context context;
    context.path = path;
    if (context.is_fast()) context.workers = std::make_shared<kernels::WorkerPool>(1);
    const Weights w(std::make_shared<DeltaCheckpoint>(DeltaForm::kChannelDelta), context, {}, {});
    const DeltaShape shape = {.key_heads = 6,
                              .value_heads = 6,
                              .key_dim = 5,
                              .value_dim = 7,
                              .form = DeltaForm::kChannelDelta};
    const GatedDelta delta(w / "attn", shape, {0, 6});
    StatePool pool = make_state_pool(1, delta.state_floats());
    DeltaScene scene{shape, {0, 6}};
    const Step step({{.tokens = std::vector<int32_t>(150), .pages = {0}}}, 256);
    const array y = delta(pool, {.floats = delta.state_floats()}, scene.next(150), step);
    if (context.is_fast())
      run_graph(y);
    else
      mx::eval(y);
    std::vector<float> out;
    append(out, y);
    return out;
  };
  const auto plain = run(Path::kPlain);
  check_near(run(Path::kFast), plain);
  CHECK(std::ranges::none_of(plain, [](float x) { return std::isnan(x); }));
}

TEST_CASE("gated delta: without a, Mamba 2's steps are what its biases say") {
  const auto run = [](bool has_a) {
    Context context;
    context.workers = std::make_shared<kernels::WorkerPool>(1);
    const DeltaShape shape = {.key_heads = 2,
                              .value_heads = 2,
                              .key_dim = 3,
                              .value_dim = 4,
                              .form = DeltaForm::kSsd,
                              .most_dt = 10};
    const GatedDelta delta(context, shape,
                           {.a_log = {-1, 0.5F}, .dt_bias = {0.1F, -1}, .skip = {0, 2}});
    StatePool pool = make_state_pool(1, delta.state_floats());
    DeltaInputs in = {.qkv = mx::reshape(mx::arange(60, mx::float32), {3, 20})};
    in.qkv.eval();
    if (has_a) in.a = from_host(std::vector<float>(6), {3, 2});
    const Step step({{.tokens = {1, 2, 3}, .pages = {0}}}, 4);
    const array y = delta(pool, {.floats = delta.state_floats()}, in, step);
    run_graph(y);
    std::vector<float> out;
    append(out, y);
    return out;
  };
  CHECK(run(false) == run(true));
}

TEST_CASE("gated delta: ranks have the heads of their columns, and what these share") {
  const DeltaShape many = {.key_heads = 3, .value_heads = 6, .key_dim = 5, .value_dim = 7};
  CHECK(many.columns_together() == 14);
  CHECK(many.heads_in({14, 42}).key_heads == topology::Range{1, 3});
  CHECK(many.heads_in({14, 42}).value_heads == topology::Range{2, 6});
  CHECK(many.with(many.heads_in({14, 14})).state_floats() == 0);
  DeltaShape one = many;
  one.form = DeltaForm::kSsd;
  one.key_heads = 1;
  CHECK(one.columns_together() == 7);
  CHECK(one.heads_in({21, 28}).key_heads == topology::Range{0, 1});
  CHECK(one.with(one.heads_in({21, 28})).qkv() == 17);
}

TEST_CASE("gated delta: heads of a rank read what they read among all") {
  const auto all = run_delta(Path::kFast, {0, 6}), some = run_delta(Path::kFast, {2, 4});
  constexpr size_t kDim = 7;
  REQUIRE(some.out.size() == all.out.size() / 3);
  for (size_t t = 0; t < some.out.size() / (2 * kDim); ++t)
    for (size_t i = 0; i < 2 * kDim; ++i)
      CHECK(some.out[t * 2 * kDim + i] == all.out[t * 6 * kDim + 2 * kDim + i]);
}

TEST_CASE("gated delta: columns of other heads are refused") {
  const Weights w(std::make_shared<DeltaCheckpoint>(), Context{}, {}, {});
  const DeltaShape shape = {.key_heads = 3, .value_heads = 6, .key_dim = 5, .value_dim = 7};
  const GatedDelta delta(w / "attn", shape, {0, 6});
  StatePool pool = make_state_pool(2, delta.state_floats());
  const Step step({{.tokens = {1}, .pages = {0}}}, 4);
  const array x = mx::zeros({1, 71}), gate = mx::zeros({1, 6});
  CHECK_THROWS_AS(
      delta(pool, {.floats = delta.state_floats()}, {.qkv = x, .a = gate, .b = gate}, step),
      std::invalid_argument);
}

}  // namespace
}  // namespace tandem::tensor
