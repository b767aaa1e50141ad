#include "kv/cache.h"

namespace tandem::kv {

Cache::Cache(uint32_t layers, tensor::PoolShape shape, tensor::Context context)
    : shape_(shape), context_(std::move(context)) {
  if (shape.kv_heads == 0) return;
  for (uint32_t i = 0; i < layers; ++i)
    layers_.emplace_back(tensor::make_pool(shape, context_.pool_dtype(), context_.path));
}

void Cache::copy(std::span<const uint32_t> from, std::span<const uint32_t> to) {
  if (from.empty()) return;
  for (Layer& layer : layers_) tensor::copy_pages(layer.pool(), from, to);
}

void Cache::forget_pending() {
  for (Layer& layer : layers_) {
    tensor::array fresh = tensor::mx::zeros({1}, tensor::mx::uint32);
    fresh.eval();
    layer.pool().order = fresh;
  }
}

std::vector<tensor::array> Cache::orders() const {
  std::vector<tensor::array> out;
  for (const Layer& layer : layers_) out.push_back(const_cast<Layer&>(layer).pool().order);
  return out;
}

}  // namespace tandem::kv
