// The matrices of a layer's experts in a checkpoint, stacked or one by one.
#pragma once

#include "tensor/mapped_matrix.h"

namespace tandem::tensor {

/// One projection of all experts: [experts, outputs, inputs] at module.switch_mlp.<name>,
/// module.experts.<name>, module.experts.switch_glu.<name> (gemma4), module.moe.<name> (step3p5),
/// or module.switch_mlp.fc1 and .fc2 (nemotron_h) for up_proj and down_proj; or [outputs, inputs]
/// at module.experts.N.<name>, or at .w1, .w3 and .w2 there (mixtral, minimax) for gate_proj,
/// up_proj and down_proj.
class ExpertWeights {
 public:
  ExpertWeights(const Weights& module, const char* name, uint32_t outputs, uint32_t inputs);

  /// Where expert `index` lies.
  Weights at(uint32_t index) const;
  /// Throws LoadFailure (missing, of another shape).
  MappedMatrix map(uint32_t index) const;
  /// Elements `rows` of each expert's bias, [experts, rows]; empty where experts have none. Throws
  /// LoadFailure (missing for some, of another shape).
  std::vector<float> bias(uint32_t experts, topology::Range rows) const;

 private:
  format::Tensor load(const char* leaf, uint32_t index) const;
  format::Tensor load_fused(uint32_t index) const;

  Weights module_;
  const char* name_;
  uint32_t outputs_;
  uint32_t inputs_;
  std::optional<Weights> stack_;  // where there is one tensor for all
};

/// Throws LoadFailure unless both have one format; names `where`.
void require_alike(const Weights& where, const MappedMatrix& a, const MappedMatrix& b);

}  // namespace tandem::tensor
