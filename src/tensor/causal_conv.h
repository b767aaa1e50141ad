// A short causal convolution of each channel, over ragged rows.
#pragma once

#include <memory>
#include <vector>

#include "tensor/state_pool.h"
#include "tensor/weights.h"

namespace tandem::tensor {

/// What is convolved, and perhaps what multiplies it before and after: [tokens, channels] each.
struct GatedChannels {
  array x;
  std::optional<array> gate = {};
  std::optional<array> out_gate = {};
};

struct ConvShape {
  uint32_t taps = 0;
  std::vector<topology::Range> channels;  // of all that the checkpoint has: this rank's
  bool has_silu = false;

  uint32_t width() const;
};

/// out_gate * act(conv(gate * x)) of some of a model's channels, where act is silu or nothing. A
/// row's state is its last taps - 1 products of gate and x, the oldest first: [taps - 1, channels].
class CausalConv {
 public:
  /// `module` holds weight [all channels, taps], where some layouts have an axis of 1 more, and a
  /// bias when it has one. Throws LoadFailure (missing, of other sizes).
  CausalConv(const Weights& module, const ConvShape& shape)
      : CausalConv(std::vector<Weights>(shape.channels.size(), module), shape) {}
  /// Channels side by side of several modules: a range of the shape for each.
  CausalConv(const std::vector<Weights>& modules, const ConvShape& shape);

  /// Floats of a row's state.
  uint32_t state_floats() const { return (taps_ - 1) * channels_; }

  /// Goes on from the states that the step's rows begin with, and saves those that they ask for:
  /// [tokens, channels]. Requires a part of state_floats(), and the step to outlive the graph.
  array operator()(StatePool& pool,
                   StatePart part,
                   const GatedChannels& in,
                   const Step& step) const;

 private:
  array run_plain(StatePool& pool, StatePart part, const GatedChannels& in, const Step& step) const;
  array run_fast(StatePool& pool, StatePart part, const GatedChannels& in, const Step& step) const;
  array convolved(const array& inputs, int tokens) const;

  Context context_;
  uint32_t taps_;
  uint32_t channels_;
  bool has_silu_;
  std::shared_ptr<const std::vector<float>> weight_;  // [taps, channels]; shared: with nodes
  std::shared_ptr<const std::vector<float>> bias_;    // null: none; shared: with nodes
  std::vector<array> plain_taps_;                     // [1, channels] each
  std::optional<array> plain_bias_;
};

}  // namespace tandem::tensor
