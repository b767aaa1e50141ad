// Attention of the default model's shape and of a larger model's: decode, batches, prompts.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <numeric>

#include "kernels/attention.h"
#include "kernels/benches.h"

namespace tandem::bench {
namespace {

using kernels::ScalarType;

constexpr size_t kPage = 32;

struct Heads {
  size_t heads, kv_heads, dim;
  size_t latent = 0;  // width of values that are parts of keys; 0: they lie apart

  size_t width() const { return kv_heads * dim; }
  size_t values() const { return latent == 0 ? dim : latent; }
};

struct Load {
  size_t rows, fresh, context;

  size_t pages() const { return (context + kPage - 1) / kPage; }
};

/// Rows whose pages are their own. Several layers' pools are used in turn, so that keys and values
/// come from memory, as in a model's step.
class Scene {
 public:
  Scene(Heads heads, Load load, ScalarType type) : heads_(heads), load_(load) {
    constexpr size_t kMemory = 96u << 20;  // more than the last cache
    const size_t pool = load.rows * load.pages() * kPage * heads.width() * size_of(type);
    const size_t layers = load.fresh > 1 ? 1 : kMemory / (2 * pool) + 1;
    // 0x2c2c is a small number in every type.
    for (size_t i = 0; i < 2 * layers; ++i) pools_.emplace_back(pool, std::byte{0x2c});
    table_.resize(load.rows * load.pages());
    std::iota(table_.begin(), table_.end(), 0u);
    for (uint32_t h = 0; h < heads.heads; ++h)
      kv_of_.push_back(h * static_cast<uint32_t>(heads.kv_heads) /
                       static_cast<uint32_t>(heads.heads));
    q_.assign(load.rows * load.fresh * heads.heads * heads.dim, 0.1f);
    out_ = q_;
    for (size_t r = 0; r < load.rows; ++r)
      rows_.push_back({.first_token = r * load.fresh,
                       .count = load.fresh,
                       .start = load.context - load.fresh,
                       .is_chunk = load.fresh > 1,
                       .pages = table_.data() + r * load.pages()});
    args_.kv_type = type;
  }

  void run(kernels::WorkerPool& pool) {
    next_ = (next_ + 2) % pools_.size();
    args_.q = q_.data();
    args_.out = out_.data();
    args_.k_pool = pools_[next_].data();
    args_.v_pool = heads_.latent == 0 ? pools_[next_ + 1].data() : nullptr;
    args_.page_tokens = kPage;
    args_.heads = heads_.heads;
    args_.kv_heads = heads_.kv_heads;
    args_.head_dim = heads_.dim;
    args_.value_dim = heads_.values();
    args_.kv_head_of = kv_of_.data();
    args_.rows = rows_;
    args_.scale = 1.0f / std::sqrt(static_cast<float>(heads_.dim));
    kernels::attention(pool, args_);
  }

  /// Of the pools, and multiplications and additions of visible pairs.
  double bytes() const {
    const size_t keys = load_.rows * load_.context * heads_.width();
    return static_cast<double>((heads_.latent == 0 ? 2 : 1) * keys * size_of(args_.kv_type));
  }
  double flops() const {
    const double seen =
        static_cast<double>(load_.context) - static_cast<double>(load_.fresh - 1) / 2;
    const double pairs = static_cast<double>(load_.rows * load_.fresh) * seen;
    return pairs * static_cast<double>(heads_.heads * (heads_.dim + heads_.values())) * 2;
  }

 private:
  Heads heads_;
  Load load_;
  kernels::AttentionArgs args_;
  std::vector<std::vector<std::byte>> pools_;  // keys, values, keys, values, …
  std::vector<uint32_t> table_, kv_of_;
  std::vector<float> q_, out_;
  std::vector<kernels::AttentionRow> rows_;
  size_t next_ = 0;
};

}  // namespace

void bench_attention(const Settings& settings, kernels::WorkerPool& pool) {
  for (const ScalarType type : {ScalarType::kF16, ScalarType::kF32}) {
    for (const Heads heads :
         {Heads{9, 3, 64}, Heads{16, 8, 128}, Heads{8, 1, 512}, Heads{16, 1, 576, 512}}) {
      for (const Load load :
           {Load{1, 1, 512}, Load{1, 1, 2048}, Load{1, 1, 16384}, Load{8, 1, 2048},
            Load{1, 17, 2048}, Load{1, 512, 512}, Load{1, 512, 2048}, Load{1, 512, 8192}}) {
        const std::string name = fmt::format(
            "{} {}/{}x{} rows {} new {:3} context {:5}", type == ScalarType::kF16 ? "f16" : "f32",
            heads.heads, heads.kv_heads, heads.dim, load.rows, load.fresh, load.context);
        if (name.find(settings.shape) == std::string::npos) continue;
        Scene scene(heads, load, type);
        const double seconds = medians(settings, {[&] { scene.run(pool); }})[0];
        fmt::print("attention {}: {:9.1f} us {:6.1f} GB/s {:6.1f} GFLOP/s\n", name, seconds * 1e6,
                   scene.bytes() / seconds / 1e9, scene.flops() / seconds / 1e9);
      }
    }
  }
}

}  // namespace tandem::bench
