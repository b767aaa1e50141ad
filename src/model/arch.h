// Families of models: how a config becomes layers.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kv/cache.h"
#include "model/config.h"
#include "tensor/weights.h"

namespace tandem::model {

/// One decoder layer.
class Layer {
 public:
  virtual ~Layer() = default;
  /// [tokens, hidden] → the same. `kv` is null where the layer keeps nothing on this rank, `input`
  /// [tokens, Config::layer_inputs] where layers are told nothing of the tokens.
  virtual tensor::array operator()(const tensor::array& x,
                                   kv::Layer* kv,
                                   const tensor::Step& step,
                                   const tensor::array* input) const = 0;
};

/// What a family is made of.
struct Arch {
  std::string_view model_type;
  Result<Config> (*decode)(const nlohmann::json& config);
  /// Throws LoadFailure.
  std::unique_ptr<Layer> (*make_layer)(const Config& config,
                                       const tensor::Weights& w,
                                       uint32_t index);
  /// Floats of a recurrent layer's state on a rank with this part, 0 where it has no share; null
  /// for families without such layers.
  uint32_t (*state_floats)(const Config& config, const topology::Part& part) = nullptr;
  std::string_view final_norm = "norm";         // below "model", before the head
  std::string_view embedding = "embed_tokens";  // below "model"
  /// Puts into a config what only the tensors say; null where there is nothing.
  void (*settle)(const format::Checkpoint& checkpoint, Config& config) = nullptr;
};

/// An Arch whose layers are values of type L: L(config, weights, index), and L(x, kv, step), or
/// L(x, kv, step, input) for families whose layers are told of the tokens. Where some are recurrent
/// (Config::is_recurrent), L::state_floats is Arch::state_floats.
template <class L>
Arch decoder(std::string_view model_type, Result<Config> (*decode)(const nlohmann::json&)) {
  struct Held final : Layer {
    Held(const Config& c, const tensor::Weights& w, uint32_t index) : layer(c, w, index) {}
    tensor::array operator()(const tensor::array& x,
                             kv::Layer* kv,
                             const tensor::Step& step,
                             const tensor::array* input) const override {
      if constexpr (requires { layer(x, kv, step, input); })
        return layer(x, kv, step, input);
      else
        return layer(x, kv, step);
    }
    L layer;
  };
  Arch arch = {
      model_type, decode,
      [](const Config& c, const tensor::Weights& w, uint32_t index) -> std::unique_ptr<Layer> {
        return std::make_unique<Held>(c, w, index);
      }};
  if constexpr (requires { &L::state_floats; }) arch.state_floats = &L::state_floats;
  return arch;
}

/// All families, sorted by model_type.
const std::vector<Arch>& archs();

/// kUnsupported, naming what is supported, for an unknown model_type.
Result<Arch> find_arch(const nlohmann::json& config);

/// What a checkpoint's header says about its model.
struct Description {
  Arch arch;
  Config config;
};

/// Finds the family and decodes the config; a config that does not say whether the head is tied is
/// settled by the tensors. Errors as find_arch() and Arch::decode, and kCorrupt where the tensors
/// are of another number of experts than num_experts.
Result<Description> describe(const format::Checkpoint& checkpoint);

/// What each layer of a rank's part keeps. `frees_windows`: layers that see a window have pages of
/// their own, which are given back when the window has left them.
std::vector<kv::LayerShape> layer_shapes(const Description& model,
                                         const topology::Part& part,
                                         bool frees_windows);

/// Positions that the layer with the widest window sees; 0 where all see everything.
uint32_t widest_window(const Config& config);

}  // namespace tandem::model
