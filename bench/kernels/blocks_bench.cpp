// Block-sparse attention of MiniMax M3's published shape: the choice of blocks, and what they cost.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <numeric>

#include "kernels/attention.h"
#include "kernels/benches.h"
#include "kernels/key_choice.h"

namespace tandem::bench {
namespace {

constexpr size_t kBlockPage = 32, kBlockHeads = 64, kBlockKvHeads = 4, kBlockDim = 128,
                 kBlockTokens = 128, kTakenBlocks = 16;
constexpr size_t kBlockBytes = sizeof(uint16_t);  // of a pool's element

/// The last `fresh` tokens of one row. Several layers' pools are used in turn, so that what is read
/// comes from memory.
class BlockScene {
 public:
  BlockScene(size_t fresh, size_t context) {
    constexpr size_t kMemory = 96u << 20;  // more than the last cache
    const size_t pages = (context + kBlockPage - 1) / kBlockPage, slots = pages * kBlockPage;
    const size_t layers = fresh > 1 ? 1 : kMemory / (slots * kBlockDim * kBlockBytes) + 1;
    // 0x2c2c is a small number.
    index_keys_.assign(layers,
                       std::vector<std::byte>(slots * kBlockDim * kBlockBytes, std::byte{0x2c}));
    keys_.assign(slots * kBlockKvHeads * kBlockDim * kBlockBytes, std::byte{0x2c});
    values_ = keys_;
    table_.resize(pages);
    std::iota(table_.begin(), table_.end(), 0u);
    index_queries_.assign(fresh * kBlockKvHeads * kBlockDim, 0.1f);
    queries_.assign(fresh * kBlockHeads * kBlockDim, 0.1f);
    out_ = queries_;
    chosen_.resize(fresh * kBlockKvHeads * kTakenBlocks);
    for (uint32_t h = 0; h < kBlockHeads; ++h)
      kv_of_.push_back(h / static_cast<uint32_t>(kBlockHeads / kBlockKvHeads));
    row_ = {.count = fresh, .start = context - fresh, .pages = table_.data()};
    add_rows(context);
  }

  void choose(kernels::WorkerPool& pool) {
    next_ = (next_ + 1) % index_keys_.size();
    kernels::choose_keys(pool, {.q = index_queries_.data(),
                                .heads = kBlockKvHeads,
                                .dim = kBlockDim,
                                .k_pool = index_keys_[next_].data(),
                                .kv_type = kernels::ScalarType::kF16,
                                .page_tokens = kBlockPage,
                                .rows = std::span(&row_, 1),
                                .block = kBlockTokens,
                                .top_k = kTakenBlocks,
                                .last_blocks = 1,
                                .chosen = chosen_.data()});
  }

  /// To blocks that lie evenly in the context.
  void attend(kernels::WorkerPool& pool) {
    kernels::attention(pool, {.q = queries_.data(),
                              .out = out_.data(),
                              .k_pool = keys_.data(),
                              .v_pool = values_.data(),
                              .kv_type = kernels::ScalarType::kF16,
                              .page_tokens = kBlockPage,
                              .heads = kBlockHeads,
                              .kv_heads = kBlockKvHeads,
                              .head_dim = kBlockDim,
                              .kv_head_of = kv_of_.data(),
                              .rows = rows_,
                              .scale = 1.0f / std::sqrt(static_cast<float>(kBlockDim))});
  }

 private:
  void add_rows(size_t context) {
    constexpr size_t kPages = kBlockTokens / kBlockPage;
    lists_.reserve(row_.count * kTakenBlocks * kPages);
    for (size_t t = 0; t < row_.count; ++t) {
      kernels::AttentionRow one = row_;
      one.first_token = t;
      one.count = 1;
      const size_t begin = lists_.size(), step = context / kBlockTokens / kTakenBlocks;
      for (size_t i = 0; i < kTakenBlocks * kPages; ++i)
        lists_.push_back(table_[i / kPages * step * kPages + i % kPages]);
      one.pages = lists_.data() + begin;
      one.start = (kTakenBlocks - 1) * kBlockTokens + (row_.start + t) % kBlockTokens;
      rows_.push_back(one);
    }
  }

  std::vector<std::vector<std::byte>> index_keys_;
  std::vector<std::byte> keys_, values_;
  std::vector<uint32_t> table_, lists_, kv_of_, chosen_;
  std::vector<float> index_queries_, queries_, out_;
  kernels::AttentionRow row_;
  std::vector<kernels::AttentionRow> rows_;
  size_t next_ = 0;
};

}  // namespace

void bench_blocks(const Settings& settings, kernels::WorkerPool& pool) {
  for (const size_t fresh : {1u, 512u}) {
    for (const size_t context : {4096u, 16384u, 65536u, 131072u}) {
      const std::string name = fmt::format("new {:3} context {:6}", fresh, context);
      const bool is_long = fresh > 1 && context > 16384;
      if (is_long || name.find(settings.shape) == std::string::npos) continue;
      BlockScene scene(fresh, context);
      const auto seconds =
          medians(settings, {[&] { scene.choose(pool); }, [&] { scene.attend(pool); }});
      const double keys = static_cast<double>(context * kBlockDim * kBlockBytes);
      const double products = static_cast<double>(fresh * kBlockKvHeads * kBlockDim * 2 * context);
      fmt::print(
          "blocks {}: choice {:9.1f} us {:6.1f} GB/s {:6.1f} GFLOP/s, attention {:9.1f} us\n", name,
          seconds[0] * 1e6, keys / seconds[0] / 1e9, products / seconds[0] / 1e9, seconds[1] * 1e6);
    }
  }
}

}  // namespace tandem::bench
