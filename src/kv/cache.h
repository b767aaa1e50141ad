// The device cache of one rank: a pool of pages for each of its layers.
#pragma once

#include <span>
#include <vector>

#include "tensor/attention.h"

namespace tandem::kv {

/// One layer's keys and values.
class Layer {
 public:
  explicit Layer(tensor::Pool pool) : pool_(std::move(pool)) {}

  /// Stores k and v of the step's tokens and returns what their queries attend to: see
  /// tensor::attend().
  tensor::array attend(const tensor::QueryKeyValue& x,
                       const tensor::AttentionShape& shape,
                       const tensor::Step& step,
                       const tensor::Context& context) {
    return tensor::attend(pool_, x, shape, step, context);
  }

  tensor::Pool& pool() { return pool_; }

 private:
  tensor::Pool pool_;
};

/// Allocated once; page ids mean the same in every layer and on every rank. Engine thread.
class Cache {
 public:
  /// `layers` pools; a shape without KV heads (a rank without heads) gives an empty cache.
  Cache(uint32_t layers, tensor::PoolShape shape, tensor::Context context);

  /// Requires index below the number of layers, and KV heads.
  Layer& layer(uint32_t index) { return layers_[index]; }
  bool is_empty() const { return layers_.empty(); }
  const tensor::PoolShape& shape() const { return shape_; }

  /// Copies pages in every layer before anything later in the order reads or writes.
  void copy(std::span<const uint32_t> from, std::span<const uint32_t> to);

  /// After a step that failed: no array waits for its nodes any longer.
  void forget_pending();

  /// What a later evaluation must include for copies to have happened.
  std::vector<tensor::array> orders() const;

  /// Bytes of one page in all layers.
  static uint64_t page_bytes(uint32_t layers,
                             const tensor::PoolShape& shape,
                             tensor::mx::Dtype dtype) {
    return layers * shape.page_bytes(dtype);
  }

 private:
  tensor::PoolShape shape_;
  tensor::Context context_;
  std::vector<Layer> layers_;
};

}  // namespace tandem::kv
