#include "tensor/norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "tensor/device.h"
#include "tensor/evaluator.h"
#include "tensor/group_norm.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

/// A weight for each of 12 columns.
class NormCheckpoint final : public format::Checkpoint {
 public:
  const nlohmann::json& config() const override { return config_; }
  std::vector<std::string> names() const override { return {"norm.weight"}; }
  bool has(std::string_view name) const override { return name == "norm.weight"; }
  Result<format::Tensor> describe(std::string_view) const override {
    format::Tensor out;
    out.shape = {static_cast<int64_t>(weight_.size())};
    out.bytes = std::as_bytes(std::span(weight_));
    return out;
  }
  Result<format::Tensor> tensor(std::string_view name,
                                std::optional<format::RowRange>) const override {
    return describe(name);
  }
  Result<std::optional<format::Quantization>> quantization(std::string_view) const override {
    return std::optional<format::Quantization>();
  }
  uint64_t weight_bytes() const override { return weight_.size() * sizeof(float); }
  std::filesystem::path directory() const override { return {}; }

  std::vector<float> weight_ = {1, 2, 3, 4, -1, -2, -3, -4, 0.5F, 0, 7, 8};

 private:
  nlohmann::json config_;
};

TEST_CASE("rms norm: groups of columns are normed apart, and each column has its own weight") {
  use_device(mx::Device::cpu);
  const auto checkpoint = std::make_shared<NormCheckpoint>();
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> x(3 * 8);
  for (float& each : x) each = normal(random);
  for (const Path path : {Path::kFast, Path::kPlain}) {
    Context context;
    context.path = path;
    if (context.is_fast()) context.workers = std::make_shared<kernels::WorkerPool>(2);
    const Weights w(checkpoint, context, {}, {});
    const RmsNorm norm(w / "norm", 1e-5, RmsNorm::Groups{.all = 12, .here = {4, 12}, .width = 4});
    const array y = norm(from_host(x, {3, 8}));
    if (context.is_fast())
      run_graph(y);
    else
      mx::eval(y);
    for (size_t i = 0; i < x.size(); ++i) {
      float squares = 0;
      for (size_t j = i / 4 * 4; j < i / 4 * 4 + 4; ++j) squares += x[j] * x[j];
      const float want = x[i] / std::sqrt(squares / 4 + 1e-5F) * checkpoint->weight_[4 + i % 8];
      CHECK(on_host<float>(y)[i] == doctest::Approx(want).epsilon(1e-5));
    }
  }
}

TEST_CASE("group norm: columns are normed by their groups, and strided rows as dense ones") {
  use_device(mx::Device::cpu);
  const auto checkpoint = std::make_shared<NormCheckpoint>();
  std::vector<float> x(2 * 15);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7) % 11) - 4;
  for (const Path path : {Path::kFast, Path::kPlain}) {
    Context context;
    context.path = path;
    if (context.is_fast()) context.workers = std::make_shared<kernels::WorkerPool>(2);
    const Weights w(checkpoint, context, {}, {});
    const GroupNorm norm(w / "norm", 1e-5, {.all = 12, .groups = 3, .here = {0, 12}});
    const array all = from_host(x, {2, 15});
    array columns = mx::slice(all, {0, 0}, {2, 12});
    columns.eval();
    const array y = norm(columns);
    if (context.is_fast())
      run_graph(y);
    else
      mx::eval(y);
    for (size_t i = 0; i < 24; ++i) {
      const float* group = x.data() + i / 12 * 15 + i % 12 / 4 * 4;
      float squares = 0;
      for (size_t j = 0; j < 4; ++j) squares += group[j] * group[j];
      const float want =
          group[i % 4] / std::sqrt(squares / 4 + 1e-5F) * checkpoint->weight_[i % 12];
      CHECK(on_host<float>(y)[i] == doctest::Approx(want).epsilon(1e-5));
    }
  }
  const Weights w(checkpoint, Context{}, {}, {});
  CHECK_THROWS_AS(GroupNorm(w / "norm", 1e-5, {.all = 16, .groups = 4, .here = {0, 8}}),
                  LoadFailure);
}

TEST_CASE("rms norm: a weight of other columns than a row has is refused") {
  const Weights w(std::make_shared<NormCheckpoint>(), Context{}, {}, {});
  const RmsNorm::Groups groups = {.all = 16, .here = {0, 8}, .width = 4};
  CHECK_THROWS_AS(RmsNorm(w / "norm", 1e-5, groups), LoadFailure);
}

}  // namespace
}  // namespace tandem::tensor
