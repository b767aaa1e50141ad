// A product for each head of attention, with a matrix of the head's own.
#pragma once

#include <memory>
#include <vector>

#include "tensor/mapped_matrix.h"

namespace tandem::tensor {

class HeadLinear {
 public:
  /// `heads`: this rank's, at least one, all [outputs, inputs] and of one format. Counted as bytes
  /// of `module`. Throws LoadFailure (NaN or infinite, a layout that no path has).
  HeadLinear(const Weights& module, const std::vector<MappedMatrix>& heads);

  /// x [tokens, heads * (inputs + kept)] → [tokens, heads * (kept + outputs)]: the last `kept`
  /// values of each head go before its product.
  array operator()(const array& x, uint32_t kept = 0) const;

 private:
  using Packed = std::vector<kernels::PackedMatrix>;

  void load_plain(const Weights& module, const std::vector<MappedMatrix>& heads);
  array run_plain(const array& x, int kept) const;
  array multiply_plain(const array& x) const;
  array run_fast(const array& x, size_t kept) const;

  Context context_;
  uint32_t inputs_, outputs_, heads_;
  std::optional<array> weight_, scales_, biases_;  // [heads, outputs, any], plain path
  std::optional<format::Quantization> quantization_;
  std::shared_ptr<const Packed> packed_;  // shared: with the graph's nodes
};

}  // namespace tandem::tensor
