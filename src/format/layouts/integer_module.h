// Weights as integers with a scale and a zero for each group of inputs, on their way into the
// affine layout.
#pragma once

#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {

/// A matrix [outputs, inputs] of codes: w = (code - zero) * scale. The functions take rows of
/// outputs, are called by any thread, and give an error that names the tensor.
struct IntegerModule {
  std::string name;
  int64_t outputs = 0;
  int64_t inputs = 0;
  int64_t groups = 0;  // that the inputs are cut into, all of one size
  int bits = 0;
  Dtype scale_type = Dtype::kF16;
  /// Words as the affine layout has them: [rows, inputs * bits / 32], codes LSB first.
  std::function<Result<Tensor>(RowRange rows)> codes = {};
  /// Scales [rows, groups] of scale_type.
  std::function<Result<Tensor>(RowRange rows)> scales = {};
  /// Zeros [rows, groups]; null where all of them are the middle of the codes, 2^(bits - 1).
  std::function<Result<std::vector<int>>(RowRange rows)> zeros = {};
  /// Name of a tensor that has the group of each input, I32 [inputs]; empty: they are in order.
  std::string group_index = {};
};

/// Adds weight, scales and biases of the module: w = code * scale + bias, where bias = -zero *
/// scale rounded to the scales' type. Groups that no kernel has are shown as several of 128, 64 or
/// 32 with the same scale; inputs out of the order of their groups as reordered.h says. Errors name
/// the module: kUnsupported (other groups, other types of scales), kCorrupt (sizes that do not
/// fit).
Status add_integers(const Checkpoint& from, IntegerModule module, Derivations& derivations);

/// The module's zeros, [rows, groups].
Result<std::vector<int>> zeros_of(const IntegerModule& module, RowRange rows);

/// Columns of a matrix that the checkpoint keeps the other way round, as rows [columns, its rows].
Result<Tensor> turned(const Checkpoint& from, const std::string& name, RowRange columns);

/// Code `at` of a little-endian stream of codes of `bits`, LSB first.
unsigned code_at(const std::byte* words, int bits, size_t at);

/// kCorrupt, with both shapes, unless a tensor has this type and shape.
Status check_is(const Checkpoint& from,
                const std::string& name,
                Dtype dtype,
                const std::vector<int64_t>& shape);

}  // namespace tandem::format
