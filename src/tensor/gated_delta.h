// The gated delta rule over ragged rows: attention whose past is one matrix a head.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/gated_delta.h"
#include "tensor/state_pool.h"
#include "tensor/weights.h"

namespace tandem::tensor {

using kernels::DeltaForm;

/// Heads that a rank has some of.
struct DeltaHeads {
  topology::Range key_heads;
  topology::Range value_heads;
};

/// Heads of a layer, or of a rank's share of it. Value heads that follow each other share a key
/// head. In Mamba 2 key heads are called groups, and key_dim the size of a state.
struct DeltaShape {
  uint32_t key_heads = 0;
  uint32_t value_heads = 0;  // a multiple of key_heads
  uint32_t key_dim = 0;
  uint32_t value_dim = 0;
  DeltaForm form = DeltaForm::kGatedDelta;
  float least_dt = 0;  // of Mamba 2: limits of a token's step
  float most_dt = 0;

  uint32_t keys() const { return key_heads * key_dim; }
  uint32_t values() const { return value_heads * value_dim; }
  uint32_t group() const { return value_heads / key_heads; }
  /// q, k and v of a token.
  uint32_t qkv() const { return 2 * keys() + values(); }
  uint32_t state_floats() const { return value_heads * key_dim * value_dim; }

  /// Of the columns of all value heads, so many go to one rank together: those that share a key
  /// head, or one head where all share the same, which is on every rank then.
  uint32_t columns_together() const {
    return form == DeltaForm::kSsd && key_heads == 1 ? value_dim : group() * value_dim;
  }
  /// The heads of a rank that has these columns, whole parts of columns_together().
  DeltaHeads heads_in(topology::Range columns) const;
  /// What a rank with these heads has.
  DeltaShape with(const DeltaHeads& heads) const;
  /// Decays of a value head.
  uint32_t decays() const { return form == DeltaForm::kChannelDelta ? key_dim : 1; }
};

/// What the rule takes in of each token.
struct DeltaInputs {
  array qkv;                    // [tokens, keys + keys + values]
  std::optional<array> a = {};  // [tokens, value_heads * decays]; of kSsd alone absent: zeros
  std::optional<array> b = {};  // [tokens, value_heads]; not of kSsd
};

/// Numbers of each value head.
struct DeltaParameters {
  std::vector<float> a_log;    // [value_heads]
  std::vector<float> dt_bias;  // [value_heads, decays]
  std::vector<float> skip;     // [value_heads], of kSsd; else empty
};

/// The rule of kernels/gated_delta.h. A row's state is float32 [value_heads, key_dim, value_dim].
class GatedDelta {
 public:
  /// `module` holds A_log and dt_bias, and of Mamba 2 D, of which `value_heads` are this rank's, as
  /// many as `shape` has. Throws LoadFailure.
  GatedDelta(const Weights& module, const DeltaShape& shape, topology::Range value_heads);
  /// With numbers that no checkpoint holds.
  GatedDelta(const Context& context, const DeltaShape& shape, DeltaParameters parameters);

  uint32_t state_floats() const { return shape_.state_floats(); }

  /// Goes on from the states that the step's rows begin with, and saves those that they ask for:
  /// [tokens, values]. Requires a part of state_floats(), and the step to outlive the graph.
  array operator()(StatePool& pool, StatePart part, const DeltaInputs& in, const Step& step) const;

 private:
  array run_plain(StatePool& pool, StatePart part, const DeltaInputs& in, const Step& step) const;
  array run_fast(StatePool& pool, StatePart part, const DeltaInputs& in, const Step& step) const;

  Context context_;
  DeltaShape shape_;
  std::shared_ptr<const DeltaParameters> parameters_;  // shared: with nodes
};

}  // namespace tandem::tensor
