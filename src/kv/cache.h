// The device cache of one rank: what each of its layers keeps of rows that go on.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tensor/attention.h"
#include "tensor/state_pool.h"

namespace tandem::kv {

/// What a layer keeps on this rank: the same for each of its attentions.
struct LayerShape {
  tensor::PageGroup group = tensor::PageGroup::kAll;  // of its pages
  uint32_t kv_heads = 0;                              // 0: no keys and values
  uint32_t head_dim = 0;
  uint32_t latent_dim =
      0;  // of values that are parts of keys: see tensor::PoolShape; 0: they are not
  uint32_t value_dim = 0;     // of values that lie apart; 0: head_dim
  uint32_t attentions = 1;    // that keep keys and values, each its own
  uint32_t choice_dim = 0;    // of keys by which others are chosen: tensor/key_choice.h; 0: none
  uint32_t kept_choice = 0;   // blocks in a choice that later tokens may take; 0: none may
  uint32_t state_floats = 0;  // of its recurrent state; 0: none
  /// The layer, counted from this rank's first, whose keys and values it reads; it keeps none.
  std::optional<uint32_t> source = {};

  /// Bytes of keys and values of one page, and of the choice that is kept beside them.
  uint64_t page_bytes(uint32_t page_tokens, uint32_t element_bytes) const {
    const uint64_t values = latent_dim != 0 ? 0 : value_dim != 0 ? value_dim : head_dim;
    const uint64_t width = attentions * kv_heads * (head_dim + values) + choice_dim;
    return page_tokens * width * element_bytes + uint64_t{kept_choice} * sizeof(uint32_t);
  }
  uint64_t slot_bytes() const { return uint64_t{state_floats} * sizeof(float); }
};

/// How much there is room for.
struct CacheShape {
  uint32_t page_tokens = 0;
  uint32_t pages = 0;         // of layers that keep all positions
  uint32_t window_pages = 0;  // of layers that keep a window of them
  uint32_t state_slots = 0;   // of layers with recurrent state
};

/// One layer's keys and values, or its recurrent state, or neither on a rank without a share.
class Layer {
 public:
  Layer(const LayerShape& shape, const CacheShape& room, const tensor::Context& context);

  bool is_empty() const { return pools_.empty() && !states_; }

  /// Stores k and v of the step's tokens and returns what their queries attend to: see
  /// tensor::attend(). Of the layer's attentions, the one that counts. Requires keys and values.
  tensor::array attend(const tensor::QueryKeyValue& x,
                       const tensor::AttentionShape& shape,
                       const tensor::Step& step,
                       const tensor::Context& context,
                       const tensor::ChosenKeys* chosen = nullptr,
                       uint32_t attention = 0) {
    return tensor::attend(pools_[attention], x, shape, step, context, chosen);
  }

  /// Stores the keys by which others are chosen and chooses: see tensor::choose_keys(). Requires
  /// such keys.
  tensor::ChosenKeys choose(const tensor::KeyChoiceInputs& x,
                            const tensor::KeyChoiceShape& shape,
                            const tensor::Step& step,
                            const tensor::Context& context) {
    return tensor::choose_keys(*choice_pool_, x, shape, step, context, kept_choices_.get());
  }

  /// Requires recurrent state.
  tensor::StatePool& states() { return *states_; }

  /// Copies pages of this group; does nothing where the layer's keys and values are not in it.
  void copy(tensor::PageGroup group, std::span<const uint32_t> from, std::span<const uint32_t> to);
  void forget_pending();
  void add_orders(std::vector<tensor::array>& to) const;
  uint64_t bytes() const;

 private:
  std::vector<tensor::Pool> pools_;  // one for each attention
  std::optional<tensor::Pool> choice_pool_;
  std::unique_ptr<tensor::KeptChoices> kept_choices_;  // beside it; calls hold its address
  std::optional<tensor::StatePool> states_;
};

/// Pages that are copied, and where to.
struct PageCopies {
  std::vector<uint32_t> from = {};
  std::vector<uint32_t> to = {};
};

/// A step's copies.
struct Copies {
  PageCopies all = {};
  PageCopies window = {};

  bool is_empty() const { return all.from.empty() && window.from.empty(); }
};

/// Allocated once; ids of pages and slots mean the same in every layer of a kind and on every rank.
/// Engine thread.
class Cache {
 public:
  Cache(const std::vector<LayerShape>& layers,
        const CacheShape& room,
        const tensor::Context& context);

  /// What a layer keeps, or what its source does. Requires index below the number of layers.
  Layer& layer(uint32_t index) { return layers_[sources_[index]]; }

  /// Copies pages in every layer before anything later in the order reads or writes.
  void copy(const Copies& copies);

  /// After a step that failed: no array waits for its nodes any longer.
  void forget_pending();

  /// What a later evaluation must include for copies to have happened.
  std::vector<tensor::array> orders() const;

  uint64_t bytes() const;

 private:
  std::vector<Layer> layers_;      // empty where a layer reads another's
  std::vector<uint32_t> sources_;  // of each layer: its own index, or another's
};

}  // namespace tandem::kv
