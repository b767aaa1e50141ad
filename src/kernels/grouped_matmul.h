// Products of rows with the matrices of their experts, each expert's weights read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/packed_matrix.h"
#include "kernels/pool.h"

namespace tandem::kernels {

/// Which rows go to which expert. An assignment is a pair of a row and one of its experts.
struct ExpertRows {
  std::vector<uint32_t> offsets;  // [experts + 1]: assignments of expert e are [e] to [e + 1]
  std::vector<uint32_t> rows;     // [assignments], by expert; rows of one expert ascend
  std::vector<uint32_t> places;   // [rows, top_k]: the assignment of a row's k-th expert

  size_t assignments() const { return rows.size(); }
};

/// Sorts the choices ids[row * top_k + k] by expert. Requires every id below `experts`.
ExpertRows group_by_expert(std::span<const uint32_t> ids, size_t top_k, size_t experts);

/// y[i, outputs] = x[x_rows[i], inputs] W_e^T + bias_e for every assignment i of every expert e.
struct GroupedMatmulArgs {
  const float* x = nullptr;
  size_t x_stride = 0;                // floats from row to row; 0 means inputs
  std::span<const uint32_t> offsets;  // as in ExpertRows
  const uint32_t* x_rows = nullptr;   // [assignments]; null: assignment i reads row i
  float* y = nullptr;
  size_t y_stride = 0;          // floats from row to row; 0 means outputs
  const float* bias = nullptr;  // [experts, outputs] or null
  /// Not 0: every expert has rows of its own, counted from 0: those of expert e begin at x + e *
  /// x_step and y + e * y_step. Requires x_rows null.
  size_t x_step = 0, y_step = 0;
};

/// Row i of y has the bits that matmul() gives with that expert and that row of x, whatever the
/// other assignments. All experts need one shape and format. Requires y not to overlap x. Uses the
/// pool's scratch: about `inputs` floats an assignment.
void moe_matmul(WorkerPool& pool,
                std::span<const PackedMatrix> experts,
                const GroupedMatmulArgs& args);

/// y[r, y_stride] = x[r, x_stride] W_h^T for each of `rows` rows and each matrix h, which reads
/// from column h * x_step of x on and writes from column h * y_step of y on: a matrix for each head
/// of attention. Bits and requirements as those of moe_matmul().
struct HeadMatmulArgs {
  const float* x = nullptr;
  size_t rows = 0;
  size_t x_stride = 0, x_step = 0;
  float* y = nullptr;
  size_t y_stride = 0, y_step = 0;
};
void head_matmul(WorkerPool& pool, std::span<const PackedMatrix> heads, const HeadMatmulArgs& args);

/// out[r, width] = sum over k of weights[r * top_k + k] * y[places[r * top_k + k], width], added in
/// the order of k from zero, each product fused with its addition where the level fuses.
struct CombineArgs {
  const float* y = nullptr;  // [assignments, width]
  const uint32_t* places = nullptr;
  const float* weights = nullptr;
  size_t rows = 0;
  size_t top_k = 0;
  size_t width = 0;
  float* out = nullptr;  // [rows, width]
};
void combine_experts(WorkerPool& pool, const CombineArgs& args);

}  // namespace tandem::kernels
