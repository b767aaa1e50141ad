// RowCodes: rows of x as a quantized product takes them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::kernels {

/// Rows of x in 16-bit codes, one scale for each group of the weight's columns:
///   x ≈ scale * code, |code| <= kMost, so the error is at most the group's greatest |x| / 65024.
///
/// A sum of weight code * code over a group is then an exact 32-bit integer, whatever the order and
/// the instructions that add it up: 255 * 32512 * 128 < 2^31. Codes lie in the order 0, 2, 1, 3
/// within each four columns, in which the 16-bit halves of a weight's words come (CodeLayout).
struct RowCodes {
  static constexpr float kMost = 32512.0f;

  static constexpr size_t kTile = 16;  // memory is there for whole tiles of rows

  int16_t* codes = nullptr;  // [rows, inputs]; a level may keep them in another order of its own
  float* scales = nullptr;   // [rows, groups]; not a number where x has a value that is not finite
  float* sums = nullptr;     // [rows, groups]: scale * sum of the group's codes

  static size_t padded(size_t rows) { return (rows + kTile - 1) / kTile * kTile; }
  /// Floats of memory for them.
  static size_t floats(size_t rows, size_t inputs, size_t groups) {
    return padded(rows) * (inputs / 2 + 2 * groups);
  }
  static RowCodes at(float* memory, size_t rows, size_t inputs, size_t groups) {
    RowCodes out;
    out.codes = reinterpret_cast<int16_t*>(memory);
    out.scales = memory + padded(rows) * inputs / 2;
    out.sums = out.scales + padded(rows) * groups;
    return out;
  }
};

}  // namespace tandem::kernels
