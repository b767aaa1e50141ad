// The MLP, with a gate or without.
#pragma once

#include "model/config.h"
#include "tensor/linear.h"

namespace tandem::model {

/// Modules that families call differently.
struct MlpNames {
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
};

/// down(act(gate(x)) * up(x)) with the config's activation, its inside cut over the ranks. Gate and
/// up may be one matrix, gate_up_proj. Where the config says that there is no gate, up is its own.
/// Of both, a limit (tensor::gated()).
class SwiGlu {
 public:
  SwiGlu(const tensor::Weights& w, const Config& config, MlpNames names = {});
  /// One whose inside is `width` wide, of which this rank has some columns.
  SwiGlu(const tensor::Weights& w,
         const Config& config,
         uint32_t width,
         topology::Range columns,
         MlpNames names = {},
         float limit = 0);

  /// [tokens, hidden] → the same.
  tensor::array operator()(const tensor::array& x) const;
  /// What this rank adds to that. Requires no bias where there are several ranks.
  tensor::array part(const tensor::array& x) const;

 private:
  tensor::array inside(const tensor::array& x) const;

  tensor::Context context_;
  tensor::Gate gate_;
  float limit_;
  std::optional<tensor::StackedLinear> gate_up_;  // or up alone; absent on a rank without columns
  tensor::RowLinear down_;
};

}  // namespace tandem::model
