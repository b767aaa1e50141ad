// Checkpoints of random numbers in memory, for the tests of folders that run models.
#pragma once

#include "model/random_tensors_test.h"

namespace tandem::model {

/// A model of one of the families that tests of splits, chunks and reuse run.
class RandomCheckpoint final : public RandomTensors {
 public:
  explicit RandomCheckpoint(const RandomOptions& o) : RandomTensors(o) {
    config_ = {{"model_type", o.model_type},
               {"hidden_size", o.hidden},
               {"num_hidden_layers", o.layers},
               {"num_attention_heads", o.heads},
               {"num_key_value_heads", o.kv_heads},
               {"head_dim", o.head_dim},
               {"intermediate_size", o.mlp},
               {"vocab_size", o.vocab},
               {"max_position_embeddings", 512},
               {"rms_norm_eps", 1e-5},
               {"rope_theta", 10000.0},
               {"tie_word_embeddings", o.has_tied_head}};
    if (o.window != 0) {
      config_["sliding_window"] = o.window;
      config_["layer_types"] = std::vector<std::string>(o.layers, "sliding_attention");
      config_["layer_types"].back() = "full_attention";
    }
    if (is_lfm2()) set_lfm2();
    if (is_delta()) set_delta();
    if (is_latent() || is_longcat()) set_latent();
    if (is_kimi()) set_kimi();
    if (is_bailing()) set_bailing();
    if (is_ssd()) set_ssd();
    if (is_longcat()) set_longcat();
    if (is_mimo()) set_mimo();
    if (is_m3()) set_m3();
    if (has_experts()) {
      config_[is_oss() ? "num_local_experts" : "num_experts"] = o.experts;
      config_["num_experts_per_tok"] = o.experts_of_token;
      config_[is_oss() ? "intermediate_size" : "moe_intermediate_size"] = o.expert_mlp;
      config_["mlp_only_layers"] = nlohmann::json::array();
      if (o.dense_layer < o.layers) config_["mlp_only_layers"].push_back(o.dense_layer);
      config_["norm_topk_prob"] = true;
    }
    make_tensors();
  }

 private:
  static constexpr uint32_t kKeyDim = 16, kValueDim = 32;  // of heads with a state

  void make_tensors() {
    const RandomOptions& o = options_;
    if (is_lfm2()) return make_lfm2();
    if (is_ssd()) return make_ssd();
    put_matrix(is_bailing() ? "model.word_embeddings" : "model.embed_tokens", o.vocab, o.hidden,
               2.0F, false);
    put_floats("model.norm.weight", {o.hidden}, 0.1F, 1);
    if (!o.has_tied_head) put_matrix("lm_head", o.vocab, o.hidden, 2.0F, false);
    const uint32_t q = o.heads * o.head_dim, kv = o.kv_heads * o.head_dim;
    for (uint32_t i = 0; i < o.layers; ++i) {
      const std::string p = fmt::format("model.layers.{}.", i);
      if (is_longcat()) {
        put_longcat(p);
        continue;
      }
      const bool qkv_bias = o.has_biases || o.model_type == "qwen2" || is_oss();
      put_floats(p + "input_layernorm.weight", {o.hidden}, 0.1F, 1);
      put_floats(p + "post_attention_layernorm.weight", {o.hidden}, 0.1F, 1);
      if (is_latent()) {
        const std::string attention = p + (is_bailing() ? "attention." : "self_attn.");
        if (is_kimi() && !attends(i))
          put_channel_delta(attention);
        else if (is_bailing() && !attends_in_groups(i))
          put_lightning(attention);
        else
          put_latent_attention(attention);
        put_latent_mlp(p + (is_kimi() && i > 0 ? "block_sparse_moe." : "mlp."), i);
        continue;
      }
      if (is_mimo()) {
        put_mimo(p, i);
        continue;
      }
      if (is_delta() && !attends(i)) {
        put_linear_attention(p + "linear_attn.");
        put_mlp(p + "mlp.", i);
        continue;
      }
      put_matrix(p + "self_attn.q_proj", is_delta() ? 2 * q : q, o.hidden, 1.5F, qkv_bias);
      put_matrix(p + "self_attn.k_proj", kv, o.hidden, 1.5F, qkv_bias);
      put_matrix(p + "self_attn.v_proj", kv, o.hidden, 1, qkv_bias);
      put_matrix(p + "self_attn.o_proj", o.hidden, q, 1, o.has_biases || is_oss());
      if (is_oss()) put_floats(p + "self_attn.sinks", {o.heads}, 1, 0);
      put_mlp(p + "mlp.", i);
      if (is_m3()) put_index(p + "self_attn.");
      if (!is_m3() && !o.model_type.starts_with("qwen3")) continue;
      put_floats(p + "self_attn.q_norm.weight", {o.head_dim}, 0.1F, 1);
      put_floats(p + "self_attn.k_norm.weight", {o.head_dim}, 0.1F, 1);
    }
  }

  bool is_oss() const { return options_.model_type == "gpt_oss"; }
  bool is_kimi() const { return options_.model_type == "kimi_linear"; }
  bool is_bailing() const { return options_.model_type == "bailing_hybrid"; }
  bool is_latent() const {
    return options_.model_type == "deepseek_v3" || is_kimi() || is_bailing();
  }
  bool is_lfm2() const { return options_.model_type == "lfm2"; }

  bool is_delta() const { return options_.model_type == "qwen3_5"; }

  void set_delta() {
    config_["linear_num_key_heads"] = options_.delta_heads;
    config_["linear_num_value_heads"] = 2 * options_.delta_heads;
    config_["linear_key_head_dim"] = kKeyDim;
    config_["linear_value_head_dim"] = kValueDim;
    config_["linear_conv_kernel_dim"] = options_.taps;
    config_["partial_rotary_factor"] = 0.5;
    config_["layer_types"] = nlohmann::json::array();
    for (uint32_t i = 0; i < options_.layers; ++i)
      config_["layer_types"].push_back(attends(i) ? "full_attention" : "linear_attention");
  }

  void put_linear_attention(const std::string& p) {
    const uint32_t hidden = options_.hidden, heads = 2 * options_.delta_heads;
    const uint32_t values = heads * kValueDim, qkv = 2 * options_.delta_heads * kKeyDim + values;
    put_matrix(p + "in_proj_qkv", qkv, hidden, 1.5F, false);
    put_matrix(p + "in_proj_z", values, hidden, 1, false);
    put_matrix(p + "in_proj_b", heads, hidden, 1, false);
    put_matrix(p + "in_proj_a", heads, hidden, 1, false);
    put_matrix(p + "out_proj", hidden, values, 1, false);
    put_floats(p + "conv1d.weight", {qkv, options_.taps, 1}, 0.7F, 0);
    put_floats(p + "A_log", {heads}, 0.5F, -1.5F);
    put_floats(p + "dt_bias", {heads}, 0.1F, 0);
    put_floats(p + "norm.weight", {kValueDim}, 0.1F, 1);
  }

  bool is_hybrid_ssd() const { return options_.model_type == "nemotron_h"; }
  bool is_ssd() const { return is_hybrid_ssd() || options_.model_type == "mamba2"; }
  uint32_t ssd_groups() const { return is_hybrid_ssd() ? options_.delta_heads : 1; }

  /// The third layer has experts and the fifth an MLP, where they do not attend.
  char ssd_kind(uint32_t layer) const {
    if (!is_hybrid_ssd()) return 'M';
    return attends(layer) ? '*' : layer == 2 ? 'E' : layer == 4 ? '-' : 'M';
  }

  void set_ssd() {
    const RandomOptions& o = options_;
    std::string kinds;
    for (uint32_t i = 0; i < o.layers; ++i) kinds += ssd_kind(i);
    config_.update({{"num_heads", 2 * o.delta_heads},
                    {"mamba_num_heads", 2 * o.delta_heads},
                    {"mamba_head_dim", kValueDim},
                    {"n_groups", ssd_groups()},
                    {"ssm_state_size", kKeyDim},
                    {"conv_kernel", o.taps},
                    {"hybrid_override_pattern", kinds},
                    {"n_routed_experts", o.experts},
                    {"n_shared_experts", 1},
                    {"num_experts_per_tok", o.experts_of_token},
                    {"moe_intermediate_size", o.expert_mlp},
                    {"moe_shared_expert_intermediate_size", 2 * o.expert_mlp},
                    {"moe_latent_size", o.latent}});
    if (!is_hybrid_ssd()) config_["head_dim"] = kValueDim;
  }

  void make_ssd() {
    const RandomOptions& o = options_;
    put_matrix("model.embed_tokens", o.vocab, o.hidden, 2.0F, false);
    put_floats("model.norm.weight", {o.hidden}, 0.1F, 1);
    if (!o.has_tied_head) put_matrix("lm_head", o.vocab, o.hidden, 2.0F, false);
    for (uint32_t i = 0; i < o.layers; ++i) {
      const std::string p = fmt::format("model.layers.{}.mixer.", i);
      put_floats(fmt::format("model.layers.{}.norm.weight", i), {o.hidden}, 0.1F, 1);
      switch (ssd_kind(i)) {
        case 'M':
          put_ssd_mixer(p);
          break;
        case '*':
          put_matrix(p + "q_proj", o.heads * o.head_dim, o.hidden, 1.5F, o.has_biases);
          put_matrix(p + "k_proj", o.kv_heads * o.head_dim, o.hidden, 1.5F, o.has_biases);
          put_matrix(p + "v_proj", o.kv_heads * o.head_dim, o.hidden, 1, o.has_biases);
          put_matrix(p + "o_proj", o.hidden, o.heads * o.head_dim, 1, o.has_biases);
          break;
        case 'E':
          put_ssd_experts(p);
          break;
        default:
          put_matrix(p + "up_proj", o.mlp, o.hidden, 1, o.has_biases);
          put_matrix(p + "down_proj", o.hidden, o.mlp, 1, o.has_biases);
      }
    }
  }

  void put_ssd_mixer(const std::string& p) {
    const RandomOptions& o = options_;
    const uint32_t heads = 2 * o.delta_heads, inner = heads * kValueDim;
    const uint32_t columns = inner + 2 * ssd_groups() * kKeyDim;
    put_matrix(p + "in_proj", inner + columns + heads, o.hidden, 1, o.has_biases);
    put_matrix(p + "out_proj", o.hidden, inner, 1, o.has_biases);
    put_floats(p + "conv1d.weight", {columns, o.taps, 1}, 0.7F, 0);
    put_floats(p + "conv1d.bias", {columns}, 0.1F, 0);
    put_floats(p + "A_log", {heads}, 0.5F, -1.5F);
    put_floats(p + "dt_bias", {heads}, 0.1F, 0);
    put_floats(p + "D", {heads}, 0.2F, 1);
    put_floats(p + "norm.weight", {inner}, 0.1F, 1);
  }

  void put_ssd_experts(const std::string& p) {
    const RandomOptions& o = options_;
    put_floats(p + "gate.weight", {o.experts, o.hidden}, 0.2F, 0);
    put_floats(p + "gate.e_score_correction_bias", {o.experts}, 0.1F, 0);
    put_experts(p, "fc1", o.expert_mlp, o.latent);
    put_experts(p, "fc2", o.latent, o.expert_mlp);
    put_matrix(p + "fc1_latent_proj", o.latent, o.hidden, 1, false);
    put_matrix(p + "fc2_latent_proj", o.hidden, o.latent, 1, false);
    put_matrix(p + "shared_experts.up_proj", 2 * o.expert_mlp, o.hidden, 1, false);
    put_matrix(p + "shared_experts.down_proj", o.hidden, 2 * o.expert_mlp, 1, false);
  }

  bool attends(uint32_t layer) const {
    return layer >= options_.attends_from && (layer - options_.attends_from) % 3 == 0;
  }

  void set_lfm2() {
    config_["norm_eps"] = config_["rms_norm_eps"];
    config_.erase("rms_norm_eps");
    config_["conv_L_cache"] = options_.taps;
    config_["block_auto_adjust_ff_dim"] = false;
    config_["full_attn_idxs"] = nlohmann::json::array();
    for (uint32_t i = 0; i < options_.layers; ++i)
      if (attends(i)) config_["full_attn_idxs"].push_back(i);
  }

  void make_lfm2() {
    const RandomOptions& o = options_;
    put_matrix("model.embed_tokens", o.vocab, o.hidden, 2.0F, false);
    put_floats("model.embedding_norm.weight", {o.hidden}, 0.1F, 1);
    if (!o.has_tied_head) put_matrix("lm_head", o.vocab, o.hidden, 2.0F, false);
    for (uint32_t i = 0; i < o.layers; ++i) {
      const std::string p = fmt::format("model.layers.{}.", i);
      put_floats(p + "operator_norm.weight", {o.hidden}, 0.1F, 1);
      put_floats(p + "ffn_norm.weight", {o.hidden}, 0.1F, 1);
      put_matrix(p + "feed_forward.w1", o.mlp, o.hidden, 1, false);
      put_matrix(p + "feed_forward.w3", o.mlp, o.hidden, 1, false);
      put_matrix(p + "feed_forward.w2", o.hidden, o.mlp, 1, false);
      attends(i) ? put_lfm2_attention(p + "self_attn.") : put_short_conv(p + "conv.");
    }
  }

  static constexpr uint32_t kLatentPlain = 32, kLatentRope = 16;  // of a head

  /// The first layer is dense; a head's value is as wide as head_dim.
  void set_latent() {
    config_.erase("head_dim");
    config_.update({{"kv_lora_rank", options_.latent},
                    {"q_lora_rank", options_.latent},
                    {"qk_nope_head_dim", kLatentPlain},
                    {"qk_rope_head_dim", kLatentRope},
                    {"v_head_dim", options_.head_dim},
                    {"n_routed_experts", options_.experts},
                    {"n_shared_experts", 1},
                    {"num_experts_per_tok", options_.experts_of_token},
                    {"moe_intermediate_size", options_.expert_mlp},
                    {"first_k_dense_replace", 1}});
  }

  void put_latent_attention(const std::string& p) {
    const RandomOptions& o = options_;
    put_matrix(p + "q_a_proj", o.latent, o.hidden, 1, false);
    put_floats(p + "q_a_layernorm.weight", {o.latent}, 0.1F, 1);
    put_matrix(p + "q_b_proj", o.heads * (kLatentPlain + kLatentRope), o.latent, 1.5F, false);
    put_matrix(p + "kv_a_proj_with_mqa", o.latent + kLatentRope, o.hidden, 1, false);
    put_floats(p + "kv_a_layernorm.weight", {o.latent}, 0.1F, 1);
    put_matrix(p + (is_bailing() ? "dense" : "o_proj"), o.hidden, o.heads * o.head_dim, 1, false);
    if (o.has_kv_b)
      return put_matrix(p + "kv_b_proj", o.heads * (kLatentPlain + o.head_dim), o.latent, 1, false);
    put_matrix(p + "embed_q", o.heads * o.latent, kLatentPlain, 1, false);
    stack(p + "embed_q", o.heads, o.latent);
    put_matrix(p + "unembed_out", o.heads * o.head_dim, o.latent, 1, false);
    stack(p + "unembed_out", o.heads, o.head_dim);
  }

  void put_latent_mlp(const std::string& p, uint32_t layer) {
    const RandomOptions& o = options_;
    const std::string shared = layer == 0 ? p : p + "shared_experts.";
    const uint32_t width = layer == 0 ? o.mlp : o.expert_mlp;
    put_matrix(shared + "gate_proj", width, o.hidden, 1, false);
    put_matrix(shared + "up_proj", width, o.hidden, 1, false);
    put_matrix(shared + "down_proj", o.hidden, width, 1, false);
    if (layer == 0) return;
    put_floats(p + "gate.weight", {o.experts, o.hidden}, 0.2F, 0);
    put_floats(p + (is_bailing() ? "gate.expert_bias" : "gate.e_score_correction_bias"),
               {o.experts}, 0.1F, 0);
    put_experts(p, "gate_proj", o.expert_mlp, o.hidden);
    put_experts(p, "up_proj", o.expert_mlp, o.hidden);
    put_experts(p, "down_proj", o.hidden, o.expert_mlp);
  }

  /// Layers that do not attend have as many heads as qwen3_5's have value heads.
  void set_kimi() {
    nlohmann::json with_state = nlohmann::json::array();
    for (uint32_t i = 0; i < options_.layers; ++i)
      if (!attends(i)) with_state.push_back(i + 1);
    config_.update({{"linear_attn_config",
                     {{"kda_layers", with_state},
                      {"num_heads", 2 * options_.delta_heads},
                      {"head_dim", kValueDim},
                      {"short_conv_kernel_size", options_.taps}}},
                    {"num_experts", options_.experts},
                    {"num_shared_experts", 1},
                    {"num_experts_per_token", options_.experts_of_token}});
  }

  void put_channel_delta(const std::string& p) {
    const uint32_t hidden = options_.hidden, heads = 2 * options_.delta_heads;
    const uint32_t width = heads * kValueDim;
    for (const char* x : {"q", "k", "v"}) {
      put_matrix(fmt::format("{}{}_proj", p, x), width, hidden, 1.5F, false);
      put_floats(fmt::format("{}{}_conv1d.weight", p, x), {width, 1, options_.taps}, 0.7F, 0);
    }
    for (const char* x : {"f", "g"}) {
      put_matrix(fmt::format("{}{}_a_proj", p, x), kValueDim, hidden, 1, false);
      put_matrix(fmt::format("{}{}_b_proj", p, x), width, kValueDim, 1, false);
    }
    put_matrix(p + "b_proj", heads, hidden, 1, false);
    put_floats(p + "A_log", {1, 1, heads, 1}, 0.5F, -1.5F);
    put_floats(p + "dt_bias", {width}, 0.1F, 0);
    put_floats(p + "o_norm.weight", {kValueDim}, 0.1F, 1);
    put_matrix(p + "o_proj", hidden, width, 1, false);
  }

  /// The last of three, and those that are left over.
  bool attends_in_groups(uint32_t layer) const {
    return layer % 3 == 2 || layer >= options_.layers / 3 * 3;
  }

  void set_bailing() {
    config_.update({{"head_dim", kValueDim},
                    {"layer_group_size", 3},
                    {"group_norm_size", 2},
                    {"num_experts", options_.experts},
                    {"num_shared_experts", 1}});
  }

  void put_lightning(const std::string& p) {
    const uint32_t hidden = options_.hidden, width = options_.heads * kValueDim;
    put_matrix(p + "query_key_value", 3 * width, hidden, 1.5F, false);
    put_matrix(p + "g_proj", width, hidden, 1, false);
    put_matrix(p + "dense", hidden, width, 1, false);
    put_floats(p + "g_norm.weight", {width}, 0.1F, 1);
    put_floats(p + "query_layernorm.weight", {kValueDim}, 0.1F, 1);
    put_floats(p + "key_layernorm.weight", {kValueDim}, 0.1F, 1);
  }

  bool is_longcat() const { return options_.model_type == "longcat_flash"; }

  static constexpr uint32_t kIdentities = 5;

  void set_longcat() {
    config_.update({{"num_layers", options_.layers},
                    {"ffn_hidden_size", options_.mlp},
                    {"expert_ffn_hidden_size", options_.expert_mlp},
                    {"zero_expert_num", kIdentities},
                    {"moe_topk", options_.experts_of_token},
                    {"routed_scaling_factor", 2.0}});
  }

  void put_longcat(const std::string& p) {
    const RandomOptions& o = options_;
    for (const char* half : {"0.", "1."}) {
      put_floats(p + "input_layernorm." + half + "weight", {o.hidden}, 0.1F, 1);
      put_floats(p + "post_attention_layernorm." + half + "weight", {o.hidden}, 0.1F, 1);
      put_latent_attention(p + "self_attn." + half);
      put_dense_mlp(p + "mlps." + half);
    }
    put_matrix(p + "mlp.router.classifier", o.experts + kIdentities, o.hidden, 2, false);
    put_floats(p + "mlp.router.e_score_correction_bias", {o.experts + kIdentities}, 0.05F, 0);
    put_experts(p + "mlp.", "gate_proj", o.expert_mlp, o.hidden);
    put_experts(p + "mlp.", "up_proj", o.expert_mlp, o.hidden);
    put_experts(p + "mlp.", "down_proj", o.hidden, o.expert_mlp);
  }

  bool is_mimo() const { return options_.model_type == "mimo_v2_flash"; }

  /// Layers that see a window have KV heads of their own; values are half as wide as keys.
  void set_mimo() {
    const RandomOptions& o = options_;
    config_.update({{"layernorm_epsilon", 1e-5},
                    {"v_head_dim", o.head_dim / 2},
                    {"swa_num_attention_heads", o.heads},
                    {"swa_num_key_value_heads", o.heads},
                    {"swa_head_dim", o.head_dim},
                    {"swa_v_head_dim", o.head_dim / 2},
                    {"swa_rope_theta", 1000.0},
                    {"partial_rotary_factor", 0.5},
                    {"attention_value_scale", 0.7},
                    {"sliding_window_size", o.window},
                    {"add_swa_attention_sink_bias", true},
                    {"n_routed_experts", o.experts},
                    {"num_experts_per_tok", o.experts_of_token},
                    {"moe_intermediate_size", o.expert_mlp}});
    for (const char* list : {"hybrid_layer_pattern", "moe_layer_freq"})
      config_[list] = nlohmann::json::array();
    for (uint32_t i = 0; i < o.layers; ++i) {
      config_["hybrid_layer_pattern"].push_back(i + 1 < o.layers ? 1 : 0);
      config_["moe_layer_freq"].push_back(i != o.dense_layer ? 1 : 0);
    }
  }

  /// Beside the norms.
  void put_mimo(const std::string& p, uint32_t layer) {
    const RandomOptions& o = options_;
    const bool sees_window = layer + 1 < o.layers;
    const uint32_t kv_heads = sees_window ? o.heads : o.kv_heads, value = o.head_dim / 2;
    put_matrix(p + "self_attn.q_proj", o.heads * o.head_dim, o.hidden, 1.5F, false);
    put_matrix(p + "self_attn.k_proj", kv_heads * o.head_dim, o.hidden, 1.5F, false);
    put_matrix(p + "self_attn.v_proj", kv_heads * value, o.hidden, 1, false);
    put_matrix(p + "self_attn.o_proj", o.hidden, o.heads * value, 1, false);
    if (sees_window) put_floats(p + "self_attn.attention_sink_bias", {o.heads}, 1, 0);
    if (layer == o.dense_layer) return put_dense_mlp(p + "mlp.");
    put_floats(p + "mlp.gate.weight", {o.experts, o.hidden}, 0.2F, 0);
    put_floats(p + "mlp.gate.e_score_correction_bias", {o.experts}, 0.1F, 0);
    put_experts(p + "mlp.", "gate_proj", o.expert_mlp, o.hidden);
    put_experts(p + "mlp.", "up_proj", o.expert_mlp, o.hidden);
    put_experts(p + "mlp.", "down_proj", o.hidden, o.expert_mlp);
  }

  bool is_m3() const { return options_.model_type == "minimax_m3_vl_text"; }

  /// All layers choose blocks of keys, and none has experts.
  void set_m3() {
    const RandomOptions& o = options_;
    config_.update({{"use_gemma_norm", false},
                    {"num_local_experts", o.experts},
                    {"num_experts_per_tok", o.experts_of_token},
                    {"dense_intermediate_size", o.mlp},
                    {"mlp_layer_types", std::vector<std::string>(o.layers, "dense")},
                    {"index_n_heads", o.kv_heads},
                    {"index_head_dim", kM3IndexDim},
                    {"index_block_size", kM3Block},
                    {"index_topk_blocks", kM3TopK}});
  }

  static constexpr uint32_t kM3IndexDim = 32, kM3Block = 8, kM3TopK = 3;

  void put_index(const std::string& p) {
    const RandomOptions& o = options_;
    put_matrix(p + "index_q_proj", o.kv_heads * kM3IndexDim, o.hidden, 1.5F, false);
    put_matrix(p + "index_k_proj", kM3IndexDim, o.hidden, 1.5F, false);
    put_floats(p + "index_q_norm.weight", {kM3IndexDim}, 0.1F, 1);
    put_floats(p + "index_k_norm.weight", {kM3IndexDim}, 0.1F, 1);
  }

  void put_dense_mlp(const std::string& p) {
    const RandomOptions& o = options_;
    put_matrix(p + "gate_proj", o.mlp, o.hidden, 1, false);
    put_matrix(p + "up_proj", o.mlp, o.hidden, 1, false);
    put_matrix(p + "down_proj", o.hidden, o.mlp, 1, false);
  }

  /// Makes a matrix of so many times `rows` rows an array of three axes.
  void stack(const std::string& module, uint32_t count, uint32_t rows) {
    for (const char* leaf : {"weight", "scales", "biases"}) {
      const auto found = tensors_.find(fmt::format("{}.{}", module, leaf));
      if (found != tensors_.end()) found->second.shape = {count, rows, found->second.shape[1]};
    }
  }

  void put_lfm2_attention(const std::string& p) {
    const RandomOptions& o = options_;
    put_matrix(p + "q_proj", o.heads * o.head_dim, o.hidden, 1.5F, false);
    put_matrix(p + "k_proj", o.kv_heads * o.head_dim, o.hidden, 1.5F, false);
    put_matrix(p + "v_proj", o.kv_heads * o.head_dim, o.hidden, 1, false);
    put_matrix(p + "out_proj", o.hidden, o.heads * o.head_dim, 1, false);
    put_floats(p + "q_layernorm.weight", {o.head_dim}, 0.1F, 1);
    put_floats(p + "k_layernorm.weight", {o.head_dim}, 0.1F, 1);
  }

  void put_short_conv(const std::string& p) {
    const RandomOptions& o = options_;
    put_matrix(p + "in_proj", 3 * o.hidden, o.hidden, 1.5F, o.has_biases);
    put_matrix(p + "out_proj", o.hidden, o.hidden, 1, o.has_biases);
    if (o.has_biases) put_floats(p + "conv.bias", {o.hidden}, 0.1F, 0);
    put_floats(p + "conv.weight",
               o.has_hf_layout ? std::vector<int64_t>{o.hidden, 1, o.taps}
                               : std::vector<int64_t>{o.hidden, o.taps, 1},
               0.7F, 0);
  }

  bool has_experts() const { return options_.model_type == "qwen3_moe" || is_oss(); }

  void put_mlp(const std::string& p, uint32_t layer) {
    const RandomOptions& o = options_;
    if (is_oss() || (has_experts() && layer != o.dense_layer)) {
      put_matrix(p + (is_oss() ? "router" : "gate"), o.experts, o.hidden, 2, is_oss());
      put_experts(p, "gate_proj", o.expert_mlp, o.hidden);
      put_experts(p, "up_proj", o.expert_mlp, o.hidden);
      return put_experts(p, "down_proj", o.hidden, o.expert_mlp);
    }
    put_matrix(p + "gate_proj", o.mlp, o.hidden, 1, o.has_biases);
    put_matrix(p + "up_proj", o.mlp, o.hidden, 1, o.has_biases);
    put_matrix(p + "down_proj", o.hidden, o.mlp, 1, o.has_biases);
  }

  void put_experts(const std::string& p, const char* name, uint32_t rows, uint32_t columns) {
    const uint32_t experts = options_.experts;
    const std::string stacked =
        fmt::format("{}{}.{}", p, is_oss() ? "experts" : "switch_mlp", name);
    put_matrix(stacked, experts * rows, columns, 1.5F, false);
    if (is_oss()) put_floats(stacked + ".bias", {experts, rows}, 0.5F, 0);
    for (const char* leaf : {"weight", "scales", "biases"}) {
      const auto found = tensors_.find(fmt::format("{}.{}", stacked, leaf));
      if (found == tensors_.end()) continue;
      format::Tensor all = found->second;
      all.shape = {experts, rows, all.shape[1]};
      if (options_.stacks_experts) {
        found->second = all;
        continue;
      }
      tensors_.erase(found);
      const size_t size = all.bytes.size() / experts;
      for (uint32_t e = 0; e < experts; ++e)
        tensors_[fmt::format("{}experts.{}.{}.{}", p, e, name, leaf)] = {
            .dtype = all.dtype,
            .shape = {rows, all.shape[2]},
            .bytes = all.bytes.subspan(e * size, size),
            .owner = all.owner};
    }
  }
};

}  // namespace tandem::model
