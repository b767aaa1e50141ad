// The gated delta rule at the published sizes of Qwen3-Next and Qwen 3.5, and Mamba 2's form of it
// at those of Nemotron 3 Nano: decode and prompts.
#include <fmt/format.h>

#include "kernels/benches.h"
#include "kernels/gated_delta.h"

namespace tandem::bench {
namespace {

struct DeltaLoad {
  size_t value_heads, rows, fresh;
  kernels::DeltaForm form = kernels::DeltaForm::kGatedDelta;

  bool is_ssd() const { return form == kernels::DeltaForm::kSsd; }
  size_t key_heads() const { return is_ssd() ? 8 : 16; }
  size_t value_dim() const { return is_ssd() ? 64 : 128; }
  /// Floats of a row's state.
  size_t state_floats() const { return value_heads * kKeyDim * value_dim(); }
  size_t values() const { return value_heads * value_dim(); }

  static constexpr size_t kKeyDim = 128;
};

/// Rows with states of their own. Several layers' states are used in turn, so that they come from
/// memory, as in a model's step.
class DeltaScene {
 public:
  explicit DeltaScene(DeltaLoad load) : load_(load) {
    constexpr size_t kMemory = 96U << 20;  // more than the last cache
    const size_t floats = load.rows * load.state_floats();
    for (size_t i = 0; i < kMemory / (floats * sizeof(float)) + 1; ++i)
      states_.emplace_back(floats, 0.01F);
    const size_t tokens = load.rows * load.fresh;
    qkv_.assign(tokens * width(), 0.1F);
    for (size_t i = 0; i < qkv_.size(); ++i) qkv_[i] *= static_cast<float>(i % 7) - 3.0F;
    gates_.assign(tokens * load.value_heads, 0.1F);
    parameters_.assign(load.value_heads, -1);
    out_.resize(tokens * load.values());
    for (uint32_t r = 0; r < load.rows; ++r)
      saves_.push_back({.tokens = static_cast<uint32_t>(load.fresh), .slot = r});
    for (uint32_t r = 0; r < load.rows; ++r)
      rows_.push_back({.first_token = r * load.fresh,
                       .count = load.fresh,
                       .state = r,
                       .saves = {&saves_[r], 1}});
  }

  void run(kernels::WorkerPool& pool) {
    next_ = (next_ + 1) % states_.size();
    const float* q = qkv_.data();
    kernels::gated_delta(pool, {.q = q,
                                .k = q + keys(),
                                .v = q + 2 * keys(),
                                .a = gates_.data(),
                                .b = gates_.data(),
                                .q_stride = width(),
                                .k_stride = width(),
                                .v_stride = width(),
                                .a_log = parameters_.data(),
                                .dt_bias = parameters_.data(),
                                .skip = parameters_.data(),
                                .most_dt = 1,
                                .form = load_.form,
                                .key_heads = load_.key_heads(),
                                .value_heads = load_.value_heads,
                                .key_dim = DeltaLoad::kKeyDim,
                                .value_dim = load_.value_dim(),
                                .rows = rows_,
                                .states = states_[next_].data(),
                                .out = out_.data()});
  }

  double tokens() const { return static_cast<double>(load_.rows * load_.fresh); }
  /// Multiplications and additions of the rule as it is written down: seven for a number of the
  /// state, and five of Mamba 2.
  double flops() const {
    return tokens() * (load_.is_ssd() ? 5 : 7) * static_cast<double>(load_.state_floats());
  }
  /// States read and written.
  double bytes() const { return static_cast<double>(8 * load_.rows * load_.state_floats()); }

 private:
  size_t keys() const { return load_.key_heads() * DeltaLoad::kKeyDim; }
  size_t width() const { return 2 * keys() + load_.values(); }

  DeltaLoad load_;
  std::vector<std::vector<float>> states_;
  std::vector<float> qkv_, gates_, parameters_, out_;
  std::vector<kernels::StateSave> saves_;
  std::vector<kernels::StateRow> rows_;
  size_t next_ = 0;
};

}  // namespace

void bench_delta(const Settings& settings, kernels::WorkerPool& pool) {
  constexpr auto kSsd = kernels::DeltaForm::kSsd;
  for (const DeltaLoad load :
       {DeltaLoad{32, 1, 1}, DeltaLoad{48, 1, 1}, DeltaLoad{48, 8, 1}, DeltaLoad{32, 1, 512},
        DeltaLoad{48, 1, 512}, DeltaLoad{64, 1, 1, kSsd}, DeltaLoad{64, 1, 512, kSsd}}) {
    const std::string name =
        fmt::format("{}{}/{}x{} rows {} new {:3}", load.is_ssd() ? "ssd " : "", load.key_heads(),
                    load.value_heads, load.value_dim(), load.rows, load.fresh);
    if (name.find(settings.shape) == std::string::npos) continue;
    DeltaScene scene(load);
    const double seconds = medians(settings, {[&] { scene.run(pool); }})[0];
    fmt::print("delta {}: {:9.1f} us {:6.1f} GB/s {:6.1f} GFLOP/s {:8.0f} tokens/s\n", name,
               seconds * 1e6, scene.bytes() / seconds / 1e9, scene.flops() / seconds / 1e9,
               scene.tokens() / seconds);
  }
}

}  // namespace tandem::bench
