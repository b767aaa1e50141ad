// ggml's block-quantized rows turned into MLX's layouts (codes, scales and, of affine ones,
// biases). Format: ggml-common.h's block_q4_0, block_q4_1, block_q8_0, block_mxfp4. Exact: Q4_0 is
// (q - 8) d, Q4_1 is q d + m, Q8_0 is q d, MXFP4 a power of two and codes of E2M1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/gguf.h"
#include "format/tensor.h"

namespace tandem::format {

/// Inputs that share a scale in all block types.
inline constexpr int kBlockGroup = 32;

/// Bits of a block type's codes; nullopt for plain types.
std::optional<int> block_bits(GgmlType type);

/// How a block type's codes stand for weights.
inline QuantMode block_mode(GgmlType type) {
  return type == GgmlType::kMxfp4 ? QuantMode::kMxfp4 : QuantMode::kAffine;
}

/// Bytes of `elements` values stored as `type`; elements is a multiple of 32 for block types.
uint64_t stored_bytes(GgmlType type, uint64_t elements);

/// Codes of `blocks` in file order as little-endian words, LSB first: blocks * 32 * bits / 8 bytes.
std::vector<std::byte> block_codes(GgmlType type, std::span<const std::byte> blocks);

/// One float16 per block: the scale, or the bias of the affine form. Of MXFP4 a byte (E8M0), and no
/// bias.
std::vector<std::byte> block_scales(GgmlType type, std::span<const std::byte> blocks);
std::vector<std::byte> block_biases(GgmlType type, std::span<const std::byte> blocks);

}  // namespace tandem::format
