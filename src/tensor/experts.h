// The experts of a layer: MLPs, of which each token takes some.
#pragma once

#include <memory>
#include <vector>

#include "kernels/expert_choice.h"
#include "kernels/packed_matrix.h"
#include "tensor/activation.h"
#include "tensor/weights.h"

namespace tandem::tensor {

using kernels::ExpertRouting;
using kernels::ExpertScore;

struct ExpertsShape {
  uint32_t hidden = 0;
  uint32_t width = 0;  // of an expert's inside
  uint32_t experts = 0;
  uint32_t identities = 0;  // chosen as experts with the ids after theirs, which give back x
  uint32_t top_k = 0;       // of both, that a token takes
  Gate gate = Gate::kSilu;
  bool has_gate = true;  // otherwise up is its own gate
  float limit = 0;       // see gated()
  kernels::ExpertRouting routing = {};

  uint32_t choices() const { return experts + identities; }
};

/// Numbers of each expert, [choices] or empty.
struct PerExpert {
  std::vector<float> bias = {};    // added to scores for the choice alone
  std::vector<float> scales = {};  // of the weights that the choice gives
};

class ExpertWeights;

/// A token takes the top_k best experts by their logits (kernels/expert_choice.h), each weighed
/// with its score. Of equally good ones, those with the higher ids.
class Experts {
 public:
  /// Columns `columns`, not empty, of each expert's inside. `module` holds gate_proj, up_proj and
  /// down_proj of all experts (tensor/expert_weights.h), no gate_proj where there is no gate, and
  /// their biases where they have some; the rank with the first column adds those of down_proj, and
  /// what identities give. Throws LoadFailure (missing, of another shape, cut inside a quantization
  /// group).
  Experts(const Weights& module,
          const ExpertsShape& shape,
          topology::Range columns,
          PerExpert per_expert = {});

  /// x [tokens, hidden] and logits [tokens, choices] → [tokens, hidden]: the part of these columns,
  /// which adds up over the ranks.
  array operator()(const array& x, const array& logits) const;

 private:
  /// One projection of all experts as plain MLX arrays.
  struct Plain {
    array weight;  // [experts, outputs, inputs]
    std::optional<array> scales = {}, biases = {};
    std::optional<array> bias = {};          // [experts, outputs]
    format::Quantization quantization = {};  // where there are scales

    /// Expert ids[t, k] of x[t, k or 0, 1, inputs] → [t, k, 1, outputs].
    array multiply(const array& x, const array& ids) const;
    array product(const array& x, const array& ids) const;  // without the bias
  };
  /// One matrix for each expert.
  struct Packed {
    std::vector<kernels::PackedMatrix> gate_up;  // gate's outputs above up's; or up's alone
    std::vector<kernels::PackedMatrix> down;
    std::vector<float> gate_up_bias, down_bias;  // [experts, outputs], or empty
  };
  struct Bound;

  /// Of the outputs' biases, those that the rank with these columns adds: all or none.
  topology::Range down_bias_of(topology::Range columns) const {
    return columns.begin == 0 ? topology::Range{0, shape_.hidden} : topology::Range{};
  }
  Plain load_projection(const ExpertWeights& from,
                        topology::Range rows,
                        topology::Range inputs,
                        topology::Range bias_rows) const;
  void load_plain(const Weights& module, topology::Range columns);
  void load_packed(const Weights& module, topology::Range columns);
  array run_plain(const array& x, const array& logits) const;
  array run_fast(const array& x, const array& logits) const;

  Context context_;
  ExpertsShape shape_;
  uint32_t columns_;
  bool is_first_;                                // holds the first column
  std::shared_ptr<const PerExpert> per_expert_;  // shared: with the graph's nodes
  std::vector<Plain> plain_;                     // gate where there is one, up, down
  std::shared_ptr<const Packed> packed_;         // shared: with the graph's nodes
};

}  // namespace tandem::tensor
