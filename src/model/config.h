// Hyper-parameters of a decoder, decoded strictly from a checkpoint's config.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/activation.h"
#include "tensor/attention.h"
#include "tensor/experts.h"
#include "tensor/gated_delta.h"
#include "tensor/rope.h"
#include "topology/placement.h"

namespace tandem::model {

/// Latent attention: a token keeps one vector, of which each head makes its key and its value, and
/// one key with its position in it for all heads.
struct LatentDims {
  uint32_t rank = 0;          // of that vector; 0: attention is not latent
  uint32_t query_rank = 0;    // of the vector that queries are made of; 0: they need none
  uint32_t plain = 0;         // values of a query's or key's head without a position
  uint32_t rope = 0;          // with one
  double eps = 1e-6;          // of the norms of both vectors
  double scale = 1;           // of the kept one after its norm
  uint32_t choice_heads = 0;  // of the choice of keys; 0: a token attends to all that it sees
  uint32_t choice_dim = 0;    // of such a head
  uint32_t choice_top_k = 0;  // keys that are chosen

  /// What is kept of a token.
  uint32_t key() const { return rope + rank; }
};

/// Block-sparse attention: index heads, one for each KV head, choose blocks of keys.
struct SparseDims {
  uint32_t dim = 0;           // of an index head
  uint32_t block = 0;         // positions of one; 0: no layer chooses
  uint32_t top_k = 0;         // blocks that a token reads
  uint32_t first_blocks = 0;  // of these, first ones that it reads anyway,
  uint32_t last_blocks = 0;   // and last ones, its own among them
};

struct Config {
  std::string model_type;
  uint32_t hidden = 0;
  uint32_t layers = 0;
  uint32_t extra_layers = 0;  // after those, for predicting several tokens: not used
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;                  // of latent attention: of a head's value
  uint32_t value_dim = 0;                 // of values; 0: head_dim
  uint32_t attentions = 1;                // of a layer
  topology::HeadShape window_heads = {};  // of layers that see a window, where theirs are others
  LatentDims latent = {};
  SparseDims sparse = {};
  uint32_t mlp = 0;
  uint32_t experts = 0;           // of a layer that has some
  uint32_t identity_experts = 0;  // chosen beside those, which give back what they take
  uint32_t experts_of_token = 0;
  uint32_t expert_mlp = 0;
  tensor::ExpertRouting routing = {};
  uint32_t expert_latent = 0;     // width of what experts work on; 0: hidden
  uint32_t shared_mlp = 0;        // of the expert that every token takes; 0: there is none
  bool has_expert_bias = false;   // of families that may choose experts by biased scores
  std::vector<bool> has_experts;  // of each layer, where the family has them
  uint32_t conv_taps = 0;         // of layers that convolve in place of attention
  tensor::DeltaShape delta = {};  // of layers that attend by the gated delta rule or as Mamba 2
                                  // does; or no heads
  uint32_t read_norm_groups = 0;  // of lightning attention: groups of columns that are normed
  uint32_t vocab = 0;
  uint32_t max_positions = 0;
  double rms_eps = 1e-5;
  bool has_qk_norm = false;    // of families that may have one
  double norm_offset = 0;      // added to the weights of RMS norms
  double attention_scale = 0;  // of q k; 0: 1 / sqrt(head_dim)
  tensor::QueryScale query_scale = {};
  double value_scale = 1;                           // of values
  bool has_sinks = false;                           // of families where it is for the config to say
  bool has_window_sinks = false;                    // the same of layers that see a window
  double attention_softcap = 0;                     // of scores; 0: none
  double embed_scale = 1;                           // of embeddings
  double logit_softcap = 0;                         // 0: none
  tensor::Gate gate = tensor::Gate::kSilu;          // of MLPs
  bool has_mlp_gates = true;                        // otherwise what is up is its own gate
  bool has_tied_head = false;                       // when the config does not say: see describe()
  std::shared_ptr<const tensor::Rope> rope;         // shared: by all layers
  std::shared_ptr<const tensor::Rope> window_rope;  // of layers that see a window; null: as others
  std::shared_ptr<const tensor::Rope> choice_rope;  // of keys by which others are chosen
  std::shared_ptr<const tensor::Rope> state_rope;   // of lightning attention's queries and keys
  std::vector<bool> has_rope;                       // of each layer; empty: all have it
  std::vector<uint32_t> windows;                    // a layer's window in positions, 0: all of them
  std::vector<bool> chooses_blocks = {};            // layers with sparse attention; or none
  std::vector<bool> is_recurrent = {};  // layers with a state, not keys and values; or none
  std::vector<bool> is_mlp = {};        // layers that are an MLP, or experts, alone; or none
  /// For each layer the one whose keys and values it attends to; empty: each has its own.
  std::vector<uint32_t> kv_sources = {};
  uint32_t joined_layers = 0;   // so many last ones share keys and values
  uint32_t wide_mlps_from = 0;  // layers from here on have MLPs twice as wide; 0: none has
  std::vector<float> expert_limits = {}, mlp_limits = {};  // of each layer: see tensor::gated()
  bool has_head_gates = false;  // of families that may weigh what each query head reads
  bool has_equal_kv = false;    // values of layers that see everything are their keys
  uint32_t layer_inputs = 0;    // width of what each layer is told of a token; 0: nothing

  bool sees_window(uint32_t layer) const { return !windows.empty() && windows[layer] != 0; }
  bool is_sparse(uint32_t layer) const { return !chooses_blocks.empty() && chooses_blocks[layer]; }
  bool has_own_kv(uint32_t layer) const { return kv_sources.empty() || kv_sources[layer] == layer; }

  /// How it can be cut; quant_group comes from the checkpoint.
  topology::ModelShape shape(uint32_t quant_group = 1) const {
    return {.layers = layers,
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .value_dim = value_dim,
            .mlp = mlp,
            .vocab = vocab,
            .expert_mlp = expert_mlp,
            .channels = delta.key_heads != 0 ? delta.values()
                        : conv_taps != 0     ? hidden
                                             : 0,
            .channel_unit = delta.key_heads == 0 ? 1 : delta.columns_together(),
            .quant_group = quant_group,
            .window = window_heads,
            .joined_layers = joined_layers};
  }
};

/// The fields that llama, mistral, qwen2 and qwen3 share. Errors: kCorrupt (missing, of the wrong
/// type or out of range, by name), kUnsupported (an activation or a rope that is known but not
/// offered).
Result<Config> decode_llama_config(const nlohmann::json& json);

/// The same and the experts of qwen3_moe. Errors: the same.
Result<Config> decode_qwen3_moe_config(const nlohmann::json& json);

}  // namespace tandem::model
