// What a checkpoint of random numbers is like (random_checkpoint_test.h).
#pragma once

#include <cstdint>
#include <string>

#include "format/tensor.h"

namespace tandem::model {

struct RandomOptions {
  std::string model_type = "llama";
  uint32_t layers = 2;
  uint32_t hidden = 64;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 32;
  uint32_t mlp = 96;
  uint32_t experts = 8;  // of qwen3_moe and gpt_oss
  uint32_t experts_of_token = 2;
  uint32_t expert_mlp = 64;
  uint32_t dense_layer = 1;    // among those with experts, in qwen3_moe
  bool stacks_experts = true;  // or each has tensors of its own, with the same content
  uint32_t attends_from = 1;   // of hybrids: this layer attends and every third after it
  uint32_t taps = 3;           // of hybrids' convolutions
  uint32_t delta_heads = 2;    // of qwen3_5: key heads, half as many as value heads; of nemotron_h
                               // groups of so many heads, of mamba2 its heads are in one
  bool has_hf_layout = false;  // of lfm2's convolutions
  uint32_t latent = 32;        // of latent attention: rank of keys and values, and of queries
  bool has_kv_b = false;       // of the same: kv_b_proj in place of embed_q and unembed_out
  uint32_t vocab = 101;
  bool has_tied_head = true;
  bool has_biases = false;
  int bits = 0;  // 0: dense float32
  int group = 32;
  format::QuantMode mode = format::QuantMode::kAffine;
  bool is_in_halves = false;  // floats are bfloat16
  uint32_t window = 0;        // of every layer but the last; 0: none
  std::string flipped = {};   // a tensor one of whose bits differs

  /// Whether some layers are recurrent.
  bool has_states() const {
    return model_type == "bailing_hybrid" || model_type == "kimi_linear" || model_type == "lfm2" ||
           model_type == "mamba2" || model_type == "nemotron_h" || model_type == "qwen3_5";
  }
};

}  // namespace tandem::model
