// PackedMatrix: a weight matrix in the layout that matmul() reads, quantized or dense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "kernels/scalar_type.h"

namespace tandem::kernels {

/// [begin, end) of rows or columns; the default means all.
struct Slice {
  size_t begin = 0;
  size_t end = SIZE_MAX;
};

/// What a code stands for. E2M1 and E4M3 are OCP's floats of so many bits of exponent and mantissa.
enum class CodeKind : uint8_t {
  kAffine,  // code * scale + bias
  kE2m1,    // its value * scale (mxfp4, nvfp4)
  kE4m3,    // its value * scale (mxfp8)
};

/// A view of a quantized matrix [rows, cols] as checkpoints store it: codes in a little-endian bit
/// stream per row, scales and biases [rows, cols / group].
struct QuantizedView {
  const void* codes = nullptr;  // rows * cols * bits / 8 bytes, contiguous
  const void* scales = nullptr;
  const void* biases = nullptr;              // of affine codes alone, of the type of scales
  ScalarType scale_type = ScalarType::kF32;  // a byte's where codes are floats, else not
  size_t rows = 0;
  size_t cols = 0;
  uint32_t bits = 4;    // affine: 2, 3, 4, 5, 6 or 8; those of floats
  uint32_t group = 64;  // columns that share a scale: 32, 64 or 128; of floats 16 or 32
  CodeKind kind = CodeKind::kAffine;
  bool is_in_float32 = false;  // of a checkpoint in it; affine codes: their scales say so
  Slice row_slice = {};
  Slice col_slice = {};  // both ends multiples of group
};

/// A view of a dense matrix [rows, cols].
struct DenseView {
  const void* data = nullptr;
  ScalarType type = ScalarType::kF32;
  size_t rows = 0;
  size_t cols = 0;
  size_t row_stride = 0;  // in elements; 0 means cols
  Slice row_slice = {};
  Slice col_slice = {};
};

/// Weights W[outputs, inputs] of y = x W^T, repacked: the source may be unmapped afterwards.
///
/// Layout: panels of 16 outputs (the last is padded with zeros). A quantized panel is a sequence of
/// groups, each 16 scales, 16 biases (affine) and the codes of the group's columns, column after
/// column, so that a product reads the panel once from front to back. Codes of 3, 5 and 6 bits take
/// 8.
class PackedMatrix {
 public:
  PackedMatrix() = default;

  /// Packs the slices of one or more views, stacked along the outputs (as for a fused q, k, v
  /// product). All views need the same sliced width, bits, group and types.
  /// Errors: kInvalid (empty, shapes or slices that do not fit), kUnsupported (bits, group, type of
  /// scales).
  static Result<PackedMatrix> from_quantized(std::span<const QuantizedView> views);
  static Result<PackedMatrix> from_quantized(const QuantizedView& view) {
    return from_quantized(std::span(&view, 1));
  }
  static Result<PackedMatrix> from_dense(std::span<const DenseView> views);
  static Result<PackedMatrix> from_dense(const DenseView& view) {
    return from_dense(std::span(&view, 1));
  }

  size_t outputs() const { return outputs_; }
  size_t inputs() const { return inputs_; }
  /// Memory held.
  size_t bytes() const { return panel_bytes_ * panels(); }

  // For kernels:
  static constexpr size_t kPanel = 16;
  bool is_quantized() const { return group_ != 0; }
  uint32_t stored_bits() const { return bits_; }    // 2, 4 or 8; of a dense matrix 0
  uint32_t group() const { return group_; }         // 0 when dense
  ScalarType scalar_type() const { return type_; }  // of scales and biases, or of dense weights
  CodeKind code_kind() const { return kind_; }      // when quantized
  /// Whether products take x in 16-bit codes: with quantized weights of a checkpoint in float16 or
  /// bfloat16, whose activations would have 11 or 8 bits elsewhere. One in float32 stays in it, and
  /// so does x beside codes of E4M3, which are no small integers.
  bool takes_row_codes() const { return takes_row_codes_; }
  bool has_format_of(const PackedMatrix& other) const {
    return bits_ == other.bits_ && group_ == other.group_ && type_ == other.type_ &&
           kind_ == other.kind_ && takes_row_codes_ == other.takes_row_codes_;
  }
  size_t panels() const { return (outputs_ + kPanel - 1) / kPanel; }
  const std::byte* panel(size_t index) const { return data_.get() + index * panel_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  void allocate();

  std::unique_ptr<std::byte[], Free> data_;
  size_t outputs_ = 0;
  size_t inputs_ = 0;
  size_t panel_bytes_ = 0;
  uint32_t bits_ = 0;
  uint32_t group_ = 0;
  ScalarType type_ = ScalarType::kF32;
  CodeKind kind_ = CodeKind::kAffine;
  bool takes_row_codes_ = false;
};

}  // namespace tandem::kernels
