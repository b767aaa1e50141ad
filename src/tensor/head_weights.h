// Matrices of which every head of attention has one, on their way into the layout of a path.
#pragma once

#include <vector>

#include "tensor/mapped_matrix.h"

namespace tandem::tensor {

/// Those of heads `heads` where a module holds [heads, outputs, inputs]. Throws LoadFailure
/// (missing, of another shape).
std::vector<MappedMatrix> stacked_heads(const Weights& module,
                                        topology::Range heads,
                                        uint32_t outputs,
                                        uint32_t inputs);

/// Rows of a matrix that belong to each head: head h has `stride` of them, of which these are
/// taken.
struct HeadRows {
  uint32_t stride = 0;
  topology::Range taken;
};

/// Those of heads `heads` where a module holds [all heads' rows, inputs]. Throws LoadFailure.
std::vector<MappedMatrix> row_heads(const Weights& module,
                                    topology::Range heads,
                                    HeadRows rows,
                                    uint32_t inputs);

/// The same matrix with rows and columns exchanged, dense: of the same type, and of float16 where
/// it was quantized with scales of 16 bits. Throws LoadFailure (NaN or infinite).
MappedMatrix turned(const Weights& module, const MappedMatrix& matrix);

}  // namespace tandem::tensor
