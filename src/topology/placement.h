// Which layers, heads and columns of a model each rank holds. Pure data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace tandem::topology {

/// [begin, end) of heads, columns, rows or layers.
struct Range {
  uint32_t begin = 0;
  uint32_t end = 0;

  uint32_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool contains(uint32_t i) const { return i >= begin && i < end; }
  bool operator==(const Range&) const = default;
};

/// The heads of a layer's attention.
struct HeadShape {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;   // of queries and keys
  uint32_t value_dim = 0;  // of values, and of what is read; 0: head_dim

  /// Numbers in a head's value.
  uint32_t values() const { return value_dim == 0 ? head_dim : value_dim; }

  bool operator==(const HeadShape&) const = default;
};

/// What of a model decides how it can be cut.
struct ModelShape {
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t value_dim = 0;  // 0: head_dim
  uint32_t mlp = 0;        // width of the MLP's inside
  uint32_t vocab = 0;
  uint32_t expert_mlp = 0;    // width of an expert's inside; 0: there are none
  uint32_t channels = 0;      // columns inside layers with a state; 0: there are none
  uint32_t channel_unit = 1;  // of them that no cut parts: a head, where such layers have heads
  uint32_t quant_group = 1;  // inputs that share a scale: no cut falls inside; 1 when not quantized
  HeadShape window = {};     // of layers that see a window; without heads: theirs are the others'
  uint32_t joined_layers = 0;  // so many last ones share keys and values: one stage has them all
};

enum class Split : uint8_t {
  kTensor,    // every rank holds a part of every layer
  kPipeline,  // every rank holds some layers; rank 0 the last ones and the head
};

/// One rank's part. Ranges may be empty: such a rank adds zeros.
struct Part {
  Split split = Split::kTensor;
  uint32_t rank = 0;
  uint32_t ranks = 1;
  Range layers;
  Range heads;     // query heads
  Range kv_heads;  // those that the query heads attend to; neighbours may hold the same one
  Range window_heads = {};  // the same of layers that see a window, where theirs are others
  Range window_kv_heads = {};
  Range mlp;              // columns of the MLP's inside
  Range expert_mlp = {};  // columns of the inside of each expert
  Range channels = {};    // columns inside layers with a state
  Range vocab;            // rows of the embedding and of the head
  bool has_embedding = true;
  bool has_head = true;

  bool operator==(const Part&) const = default;
};

/// Cuts a model over ranks, in proportion to `shares` (one non-negative number a rank; empty: equal
/// ones). Tensor: query heads, columns of the MLP and of each expert, channels and vocabulary each
/// cover the whole in rank order, cut at multiples of the quantization group and at heads.
/// Pipeline: each rank gets at least one layer. Errors: kInvalid (no ranks, shares that do not fit,
/// heads no multiple of KV heads, fewer layers than stages, or too many of them joined).
Result<std::vector<Part>> place(const ModelShape& shape,
                                Split split,
                                uint32_t ranks,
                                std::span<const double> shares = {});

/// The heads of a layer, and those that a rank holds.
struct HeadPart {
  HeadShape whole;
  Range heads;
  Range kv_heads;
};

/// Which heads a layer has and which of them are this rank's, by whether it sees a window.
HeadPart heads_of(const ModelShape& shape, const Part& part, bool sees_window);

/// The KV head, counted from part.kv_heads.begin, that each of a rank's query heads attends to.
std::vector<uint32_t> kv_of_head(const HeadPart& part);

}  // namespace tandem::topology
