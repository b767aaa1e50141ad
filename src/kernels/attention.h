// Causal attention of ragged rows over a paged key and value pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/pool.h"
#include "kernels/scalar_type.h"

namespace tandem::kernels {

/// A run of new tokens of one request; their keys and values are already in the pool.
struct AttentionRow {
  size_t first_token = 0;           // index of its first token in q and out
  size_t count = 0;                 // tokens
  size_t start = 0;                 // position of its first token
  bool is_chunk = false;            // of a prompt: see attention()
  const uint32_t* pages = nullptr;  // page of positions [i * page_tokens, (i + 1) * page_tokens)
  size_t pages_stride = 0;          // from a KV head's list of pages to the next; 0: all have one
  /// Of one token of latent attention that takes some keys only, ascending: key i of the row is the
  /// one at position chosen[i], and start is their number - 1. Null: it takes all.
  const uint32_t* chosen = nullptr;
};

struct AttentionArgs {
  const float* q = nullptr;      // [tokens, heads, head_dim]
  float* out = nullptr;          // [tokens, heads, value_dim], contiguous; may not overlap q
  size_t q_stride = 0;           // floats from token to token; 0 means heads * head_dim
  const void* k_pool = nullptr;  // [pages, kv_heads, head_dim, page_tokens] of kv_type
  const void* v_pool = nullptr;  // [pages, kv_heads, page_tokens, value_dim]; null: see below
  ScalarType kv_type = ScalarType::kF32;  // or kF16
  size_t page_tokens = 0;
  size_t heads = 0;
  size_t kv_heads = 0;
  size_t head_dim = 0;
  size_t value_dim = 0;                  // 0 means head_dim
  const uint32_t* kv_head_of = nullptr;  // [heads]: the KV head that each query head reads
  std::span<const AttentionRow> rows = {};
  float scale = 1.0f;            // of q . k
  size_t window = 0;             // positions a token sees, itself included; 0 means all
  const float* sinks = nullptr;  // [heads]: a logit without value in each softmax; null means none
  float softcap = 0.0f;          // scores become cap * tanh(score / cap); 0 means no cap
};

/// out = softmax(q k^T * scale) v over positions <= the token's own, inside the window.
///
/// Keys are taken in blocks that start at multiples of a fixed number of positions, in order, and
/// blocks are joined in spans that also start at fixed positions: a token's bits depend on its
/// position, its query and its keys and values, not on chunking, other rows, page size or threads.
/// Levels with tiles (AMX) take those for chunks over pools of float16 whose pages hold a multiple
/// of 16 tokens, whatever the number of tokens: products there are in pairs of bf16, as exact as 16
/// bits of q and of the weights, and the bits differ from those of other rows.
///
/// Latent attention has no v_pool: a value is the last value_dim dimensions of its key, and k_pool
/// is [pages, kv_heads, page_tokens, head_dim].
///
/// Nothing is read of a page but slots of positions before the row's end, and keys of the slots
/// beside them. Uses the pool's scratch.
void attention(WorkerPool& pool, const AttentionArgs& args);

}  // namespace tandem::kernels
