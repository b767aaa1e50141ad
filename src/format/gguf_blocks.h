// ggml's block-quantized rows turned into MLX's layouts (codes, scales and, of affine ones,
// biases) in groups of 32. Formats: ggml-common.h's block_q4_0 and so on, and dequantize_row_….
//
// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL and MXFP4 stay exact. Q4_K, Q5_K and IQ4_XS keep their
// codes; a group's scale and bias, products there, are rounded to float16. Q6_K has a scale for 16
// numbers: it becomes 8 bits in groups of 32, each number rounded to at most an eighth of its own
// step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/gguf.h"
#include "format/tensor.h"

namespace tandem::format {

/// Inputs that share a scale, of whatever type they were.
inline constexpr int kBlockGroup = 32;

/// Bits of the codes that a block type becomes; nullopt for plain types.
std::optional<int> block_bits(GgmlType type);

/// How a block type's codes stand for weights.
inline QuantMode block_mode(GgmlType type) {
  return type == GgmlType::kMxfp4 ? QuantMode::kMxfp4 : QuantMode::kAffine;
}

/// Numbers in a block: rows are multiples of it; 1 for plain types.
int64_t block_elements(GgmlType type);

/// Bytes of `elements` values stored as `type`; elements is a multiple of block_elements().
uint64_t stored_bytes(GgmlType type, uint64_t elements);

/// Codes of `blocks` in file order as little-endian words, LSB first: bits / 8 bytes a number.
std::vector<std::byte> block_codes(GgmlType type, std::span<const std::byte> blocks);

/// One float16 for each group: the scale, or the bias of the affine form. Of MXFP4 a byte (E8M0),
/// and no bias.
std::vector<std::byte> block_scales(GgmlType type, std::span<const std::byte> blocks);
std::vector<std::byte> block_biases(GgmlType type, std::span<const std::byte> blocks);

}  // namespace tandem::format
