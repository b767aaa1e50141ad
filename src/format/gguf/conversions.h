// Ways in which a tensor of a GGUF file becomes one that models read.
#pragma once

#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {

/// A tensor of the checkpoint as it is. Keeps a reference to the checkpoint.
Result<DerivedTensor> whole_tensor(const Checkpoint& from, const std::string& name);

/// Its rows in another order, or some of them: row i is what rows[i] was. kCorrupt where there is
/// no such row.
Result<DerivedTensor> with_rows(DerivedTensor tensor, std::vector<int64_t> rows);

/// Its last axis cut into as many equal parts as there are entries, part i being what parts[i] was.
/// kCorrupt where they are not equal.
Result<DerivedTensor> with_columns(DerivedTensor tensor, std::vector<int64_t> parts);

/// Every number of a plain tensor made another, as F32. kCorrupt for codes.
Result<DerivedTensor> with_values(DerivedTensor tensor, float (*change)(float));

// What tables name; the config is of no interest to these.

/// Norms that hold the 1 of (1 + w), which models add.
Result<DerivedTensor> without_one(DerivedTensor tensor, const nlohmann::json& config);
/// Taps of convolutions: [channels, taps] → [channels, taps, 1].
Result<DerivedTensor> with_last_axis(DerivedTensor tensor, const nlohmann::json& config);
/// What was written without its axis of 1: [inputs] → [1, inputs]; matrices stay.
Result<DerivedTensor> as_matrix(DerivedTensor tensor, const nlohmann::json& config);
/// log(-x), of decays that are kept as -exp(A_log).
Result<DerivedTensor> as_logarithm(DerivedTensor tensor, const nlohmann::json& config);
/// The first and the second half of all experts' rows: gate and up in one tensor.
Result<DerivedTensor> first_half(DerivedTensor tensor, const nlohmann::json& config);
Result<DerivedTensor> second_half(DerivedTensor tensor, const nlohmann::json& config);

}  // namespace tandem::format
