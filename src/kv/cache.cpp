#include "kv/cache.h"

namespace tandem::kv {
namespace {

using tensor::PageGroup;

tensor::array fresh_order() {
  tensor::array order = tensor::mx::zeros({1}, tensor::mx::uint32);
  order.eval();
  return order;
}

}  // namespace

Layer::Layer(const LayerShape& shape, const CacheShape& room, const tensor::Context& context) {
  for (uint32_t i = 0; i < shape.attentions && shape.kv_heads > 0; ++i) {
    pools_.push_back(
        tensor::make_pool({.pages = shape.group == PageGroup::kAll ? room.pages : room.window_pages,
                           .page_tokens = room.page_tokens,
                           .kv_heads = shape.kv_heads,
                           .head_dim = shape.head_dim,
                           .latent_dim = shape.latent_dim,
                           .value_dim = shape.value_dim},
                          context.pool_dtype(), context.path));
    pools_.back().group = shape.group;
  }
  if (shape.choice_dim > 0) {
    kept_choices_ = std::make_unique<tensor::KeptChoices>();
    choice_pool_ = tensor::make_pool({.pages = room.pages,
                                      .page_tokens = room.page_tokens,
                                      .kv_heads = 1,
                                      .head_dim = shape.choice_dim,
                                      .has_values = false},
                                     context.pool_dtype(), context.path);
  }
  if (shape.state_floats > 0)
    states_ = tensor::make_state_pool(room.state_slots, shape.state_floats);
}

void Layer::copy(PageGroup group, std::span<const uint32_t> from, std::span<const uint32_t> to) {
  if (pools_.empty() || pools_[0].group != group || from.empty()) return;
  for (tensor::Pool& pool : pools_) tensor::copy_pages(pool, from, to);
  if (choice_pool_) tensor::copy_pages(*choice_pool_, from, to);
}

void Layer::forget_pending() {
  for (tensor::Pool& pool : pools_) pool.order = fresh_order();
  if (choice_pool_) choice_pool_->order = fresh_order();
  if (kept_choices_) kept_choices_->clear();
  if (states_) states_->order = fresh_order();
}

void Layer::add_orders(std::vector<tensor::array>& to) const {
  for (const tensor::Pool& pool : pools_) to.push_back(pool.order);
  if (choice_pool_) to.push_back(choice_pool_->order);
  if (states_) to.push_back(states_->order);
}

uint64_t Layer::bytes() const {
  uint64_t sum =
      (choice_pool_ ? choice_pool_->bytes() : 0) + (states_ ? states_->states.nbytes() : 0);
  for (const tensor::Pool& pool : pools_) sum += pool.bytes();
  return sum;
}

Cache::Cache(const std::vector<LayerShape>& layers,
             const CacheShape& room,
             const tensor::Context& context) {
  for (const LayerShape& shape : layers) {
    sources_.push_back(shape.source.value_or(static_cast<uint32_t>(layers_.size())));
    layers_.emplace_back(shape, room, context);
  }
}

void Cache::copy(const Copies& copies) {
  for (Layer& layer : layers_) {
    layer.copy(PageGroup::kAll, copies.all.from, copies.all.to);
    layer.copy(PageGroup::kWindow, copies.window.from, copies.window.to);
  }
}

void Cache::forget_pending() {
  for (Layer& layer : layers_) layer.forget_pending();
}

std::vector<tensor::array> Cache::orders() const {
  std::vector<tensor::array> out;
  for (const Layer& layer : layers_) layer.add_orders(out);
  return out;
}

uint64_t Cache::bytes() const {
  uint64_t sum = 0;
  for (const Layer& layer : layers_) sum += layer.bytes();
  return sum;
}

}  // namespace tandem::kv
