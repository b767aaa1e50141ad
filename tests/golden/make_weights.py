#!/usr/bin/env python3
"""Write the tiny checkpoints that the golden logits in logits/ belong to. Needs numpy only.

  python make_weights.py --out DIR          # DIR/<architecture>-<variant>/{config.json, model.safetensors}

The values come from numpy (PCG64 keyed by seed and tensor name), quantized as MLX does.
sums.json holds a CRC of each file: a numpy that draws other numbers is an error here, not a wrong logit later.
  python make_weights.py --out DIR --update # writes sums.json anew
"""

import argparse
import json
import pathlib
import struct
import sys
import zlib

import linear_attention
import numpy as np
from gguf_files import GGUF, gguf_of
from layouts import LAYOUTS

HERE = pathlib.Path(__file__).resolve().parent
SEED, HIDDEN, VOCAB = 1, 128, 320
UPSTREAM = (
    *linear_attention.KINDS,
    "longcat_flash",
    "mamba2",
    "nemotron_h",
    "nemotron_h_latent",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_next",
)  # also as they were released, with the logits of f32
VARIANTS = {"f32": None, "g64": 64, "g32": 32}  # 4-bit group sizes
PUBLISHED = (  # mlx-lm's names of step3p5 and those of its first checkpoints
    (".mlp.switch_mlp.", ".moe."),
    (".mlp.gate.gate.", ".moe.gate."),
    (".mlp.gate.router_bias", ".moe.router_bias"),
    (".mlp.share_expert.", ".share_expert."),
)
M3 = ("minimax_m3", "minimax_m3_vl_text")
LATENT = ("deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa", "kimi_k2", "mistral4")
SSD = ("mamba2", "nemotron_h")  # below "backbone"
GROUPED = ("exaone_moe", "glm4_moe", *LATENT)  # experts in groups, beside shared ones
PLAIN_ROUTERS = (*(kind for kind in GROUPED if kind != "mistral4"), "mimo_v2_flash")  # never quantized
SCORE_BIASES = {kind: "gate.e_score_correction_bias" for kind in PLAIN_ROUTERS if kind != "deepseek_v2"} | {
    "lfm2_moe": "expert_bias",
    "minimax": "e_score_correction_bias",
    **{kind: "e_score_correction_bias" for kind in M3},
}
MODES = {"mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}  # (group size, bits) of micro-scaled variants
MICRO_SCALED = ["gpt_oss", "llama", "qwen3_moe"]  # families that have these, too
RELEASED = "gpt_oss_release"  # gpt_oss-mxfp4's config and names as OpenAI publishes them


def architectures():
    base = dict(
        hidden_size=HIDDEN, vocab_size=VOCAB, rms_norm_eps=1e-5, max_position_embeddings=4096, intermediate_size=192
    )
    gqa = dict(num_attention_heads=4, num_key_value_heads=2, head_dim=32)
    llama3 = dict(
        rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32
    )
    lfm2 = dict(
        model_type="lfm2",
        hidden_size=HIDDEN,
        vocab_size=VOCAB,
        max_position_embeddings=4096,
        num_attention_heads=4,
        num_key_value_heads=2,
        rope_theta=1e6,
        norm_eps=1e-5,
        block_dim=HIDDEN,
        block_ff_dim=192,
        block_multiple_of=64,
        block_ffn_dim_multiplier=1.0,
        tie_embedding=True,
    )

    def delta(key_heads, value_heads, key_dim, value_dim):
        return dict(
            linear_num_key_heads=key_heads,
            linear_num_value_heads=value_heads,
            linear_key_head_dim=key_dim,
            linear_value_head_dim=value_dim,
            linear_conv_kernel_dim=4,
        )

    latent = dict(
        base,
        num_hidden_layers=3,
        num_attention_heads=8,
        num_key_value_heads=8,
        q_lora_rank=64,
        kv_lora_rank=64,
        qk_nope_head_dim=64,
        qk_rope_head_dim=16,
        v_head_dim=32,
        rope_theta=1e4,
        tie_word_embeddings=False,
        n_routed_experts=8,
        n_shared_experts=2,
        num_experts_per_tok=3,
        moe_intermediate_size=64,
        norm_topk_prob=True,
        n_group=4,
        topk_group=2,
        routed_scaling_factor=2.5,
        first_k_dense_replace=1,
        attention_bias=False,
    )
    latent_yarn = dict(
        type="yarn",
        factor=4.0,
        original_max_position_embeddings=32,
        beta_fast=32,
        beta_slow=1,
        mscale=1.0,
        mscale_all_dim=0.7,
    )
    sliding = ["sliding_attention"] * 3 + ["full_attention"]
    families = {
        "llama": dict(
            base,
            **gqa,
            model_type="llama",
            num_hidden_layers=3,
            rope_theta=1e4,
            rope_scaling=llama3,
            tie_word_embeddings=False,
        ),
        "llama_tied_bias": dict(
            base,
            **gqa,
            model_type="llama",
            num_hidden_layers=2,
            rope_theta=1e4,
            rope_traditional=True,
            attention_bias=True,
            mlp_bias=True,
            tie_word_embeddings=True,
        ),
        "llama_swa": dict(
            base,
            **gqa,
            model_type="llama",
            num_hidden_layers=4,
            rope_theta=1e4,
            tie_word_embeddings=False,
            layer_types=sliding,
            sliding_window=12,
        ),
        "deepseek_v2": dict(
            latent,
            model_type="deepseek_v2",
            rope_scaling=latent_yarn,
            topk_method="group_limited_greedy",
            norm_topk_prob=False,
        ),
        "deepseek_v2_lite": dict(
            latent,
            model_type="deepseek_v2",
            q_lora_rank=None,
            rope_scaling=latent_yarn,
            topk_method="greedy",
            norm_topk_prob=False,
            routed_scaling_factor=1.0,
        ),
        "deepseek_v3": dict(latent, model_type="deepseek_v3", rope_scaling=latent_yarn, moe_layer_freq=1),
        "deepseek_v32": dict(
            latent,
            model_type="deepseek_v32",
            rope_scaling=latent_yarn,
            index_n_heads=16,
            index_head_dim=32,
            index_topk=16,
            moe_layer_freq=1,
        ),
        "glm_moe_dsa": dict(
            latent,
            model_type="glm_moe_dsa",
            rope_parameters=dict(rope_type="default", rope_theta=1e6),
            index_n_heads=16,
            index_head_dim=32,
            index_topk=16,
            moe_layer_freq=1,
            topk_method="noaux_tc",
            scoring_func="sigmoid",
            indexer_rope_interleave=True,
        ),
        "deepseek_v3_kv_b": dict(
            latent, model_type="deepseek_v3", q_lora_rank=None, attention_bias=True, rope_scaling=None, moe_layer_freq=2
        ),
        "gemma2": dict(
            base,
            **gqa,
            model_type="gemma2",
            num_hidden_layers=3,
            query_pre_attn_scalar=128,
            attn_logit_softcapping=5.0,
            final_logit_softcapping=3.0,
            tie_word_embeddings=True,
        ),
        "gemma3_text": dict(
            base,
            **gqa,
            model_type="gemma3_text",
            num_hidden_layers=4,
            query_pre_attn_scalar=128,
            rope_theta=1e6,
            rope_local_base_freq=1e4,
            rope_scaling=dict(rope_type="linear", factor=8.0),
            sliding_window=12,
            sliding_window_pattern=3,
            tie_word_embeddings=True,
        ),
        "gemma4_text": dict(
            base,
            model_type="gemma4_text",
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=4,
            head_dim=32,
            global_head_dim=64,
            num_global_key_value_heads=2,
            attention_k_eq_v=True,
            num_kv_shared_layers=0,
            hidden_size_per_layer_input=0,
            layer_types=["sliding_attention", "full_attention"] * 2,
            sliding_window=12,
            final_logit_softcapping=3.0,
            tie_word_embeddings=True,
        ),
        "gemma4_moe": dict(
            base,
            model_type="gemma4_text",
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=32,
            global_head_dim=64,
            num_kv_shared_layers=0,
            hidden_size_per_layer_input=0,
            layer_types=["sliding_attention", "sliding_attention", "full_attention"],
            sliding_window=12,
            tie_word_embeddings=True,
            enable_moe_block=True,
            num_experts=8,
            top_k_experts=3,
            moe_intermediate_size=64,
        ),
        "gemma4_shared": dict(
            base,
            model_type="gemma4_text",
            num_hidden_layers=6,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=32,
            global_head_dim=64,
            num_kv_shared_layers=3,
            use_double_wide_mlp=True,
            hidden_size_per_layer_input=64,
            vocab_size_per_layer_input=VOCAB,
            layer_types=[f"{kind}_attention" for kind in "sliding sliding full sliding full full".split()],
            sliding_window=12,
            final_logit_softcapping=None,
            tie_word_embeddings=True,
        ),
        "glm4_moe": dict(
            base,
            **gqa,
            model_type="glm4_moe",
            num_hidden_layers=3,
            rope_theta=1e6,
            rope_scaling=None,
            partial_rotary_factor=0.5,
            attention_bias=True,
            use_qk_norm=True,
            tie_word_embeddings=False,
            n_routed_experts=8,
            n_shared_experts=2,
            num_experts_per_tok=3,
            moe_intermediate_size=64,
            norm_topk_prob=True,
            n_group=4,
            topk_group=2,
            routed_scaling_factor=2.5,
            first_k_dense_replace=1,
        ),
        "gpt_oss": dict(
            base,
            **gqa,
            model_type="gpt_oss",
            num_hidden_layers=4,
            rope_theta=1.5e5,
            rope_scaling=dict(
                rope_type="yarn", factor=8.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0
            ),
            attention_bias=True,
            num_local_experts=6,
            num_experts_per_tok=3,
            layer_types=["sliding_attention", "full_attention"] * 2,
            sliding_window=12,
            swiglu_limit=7.0,
            tie_word_embeddings=False,
        ),
        "exaone_moe": dict(
            base,
            **gqa,
            model_type="exaone_moe",
            num_hidden_layers=4,
            rope_theta=1e6,
            layer_types=sliding,
            sliding_window=12,
            is_moe_layer=[False, True, True, True],
            tie_word_embeddings=False,
            num_experts=8,
            num_shared_experts=1,
            num_experts_per_tok=3,
            moe_intermediate_size=64,
            norm_topk_prob=True,
            n_group=2,
            topk_group=1,
            routed_scaling_factor=2.5,
        ),
        "longcat_flash": dict(
            hidden_size=HIDDEN,
            vocab_size=VOCAB,
            rms_norm_eps=1e-5,
            max_position_embeddings=4096,
            model_type="longcat_flash",
            attention_method="MLA",
            num_layers=2,
            ffn_hidden_size=192,
            expert_ffn_hidden_size=64,
            num_attention_heads=8,
            q_lora_rank=64,
            kv_lora_rank=64,
            qk_nope_head_dim=64,
            qk_rope_head_dim=16,
            v_head_dim=32,
            mla_scale_q_lora=True,
            mla_scale_kv_lora=True,
            attention_bias=False,
            rope_theta=1e6,
            n_routed_experts=6,
            zero_expert_num=4,
            zero_expert_type="identity",
            moe_topk=4,
            routed_scaling_factor=3.0,
        ),
        "mimo": dict(
            base,
            model_type="mimo",
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            rope_theta=6.4e5,
            attention_bias=True,
            tie_word_embeddings=False,
            num_nextn_predict_layers=1,
        ),
        "mimo_v2_flash": dict(
            hidden_size=HIDDEN,
            vocab_size=VOCAB,
            layernorm_epsilon=1e-5,
            max_position_embeddings=4096,
            intermediate_size=192,
            model_type="mimo_v2_flash",
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=48,
            v_head_dim=32,
            swa_num_attention_heads=8,
            swa_num_key_value_heads=4,
            swa_head_dim=32,
            swa_v_head_dim=16,
            hybrid_layer_pattern=[0, 1, 1, 0],
            sliding_window_size=12,
            add_swa_attention_sink_bias=True,
            add_full_attention_sink_bias=False,
            attention_value_scale=0.707,
            partial_rotary_factor=0.334,
            rope_theta=5e6,
            swa_rope_theta=1e4,
            moe_layer_freq=[0, 1, 0, 1],
            n_routed_experts=8,
            n_shared_experts=None,
            num_experts_per_tok=3,
            moe_intermediate_size=64,
            topk_method="noaux_tc",
            scoring_func="sigmoid",
            norm_topk_prob=True,
            n_group=4,
            topk_group=2,
            routed_scaling_factor=None,
            tie_word_embeddings=False,
        ),
        "minimax": dict(
            base,
            **gqa,
            model_type="minimax",
            num_hidden_layers=2,
            rope_theta=5e6,
            rotary_dim=16,
            use_qk_norm=True,
            scoring_func="sigmoid",
            shared_intermediate_size=0,
            tie_word_embeddings=False,
            num_local_experts=6,
            num_experts_per_tok=2,
        ),
        "glm4_moe_lite": dict(
            latent,
            model_type="glm4_moe_lite",
            rope_theta=1e6,
            rope_scaling=None,
            partial_rotary_factor=1.0,
            n_group=1,
            topk_group=1,
            routed_scaling_factor=1.8,
            num_nextn_predict_layers=1,
        ),
        "mistral4": dict(
            latent,
            model_type="mistral4",
            rope_parameters=dict(
                latent_yarn,
                rope_theta=1e6,
                rope_type="yarn",
                original_max_position_embeddings=16,
                llama_4_scaling_beta=0.5,
            ),
        ),
        "mixtral": dict(
            base,
            **gqa,
            model_type="mixtral",
            num_hidden_layers=2,
            rope_theta=1e6,
            tie_word_embeddings=False,
            num_local_experts=4,
            num_experts_per_tok=2,
        ),
        "qwen2_moe": dict(
            base,
            model_type="qwen2_moe",
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            rope_theta=1e6,
            tie_word_embeddings=False,
            num_experts=6,
            num_experts_per_tok=2,
            moe_intermediate_size=64,
            shared_expert_intermediate_size=128,
        ),
        "phi3": dict(
            base,
            model_type="phi3",
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            rope_theta=1e4,
            partial_rotary_factor=0.75,
            rope_scaling=dict(
                type="longrope",
                short_factor=[1.0] * 12,
                long_factor=[1.0 + 0.25 * i for i in range(12)],
            ),
            original_max_position_embeddings=32,
            tie_word_embeddings=False,
        ),
        "seed_oss": dict(
            base,
            **gqa,
            model_type="seed_oss",
            num_hidden_layers=2,
            rope_theta=1e7,
            attention_bias=True,
            attention_out_bias=False,
            tie_word_embeddings=False,
        ),
        "smollm3": dict(
            base,
            **gqa,
            model_type="smollm3",
            num_hidden_layers=4,
            rope_theta=1e6,
            no_rope_layer_interval=4,
            tie_word_embeddings=True,
        ),
        "step3p5": dict(
            base,
            model_type="step3p5",
            num_hidden_layers=4,
            num_attention_heads=4,
            num_attention_groups=2,
            head_dim=32,
            attention_other_setting=dict(num_attention_heads=6, num_attention_groups=3),
            layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
            sliding_window=12,
            rope_theta=[1e6, 1e4, 1e4, 1e6],
            partial_rotary_factors=[0.5, 1.0, 1.0, 0.5],
            rope_scaling=llama3,
            yarn_only_types=["full_attention"],
            use_head_wise_attn_gate=True,
            moe_num_experts=8,
            moe_top_k=3,
            moe_intermediate_size=64,
            share_expert_dim=128,
            moe_layers_enum="1,2,3",
            moe_router_scaling_factor=3.0,
            norm_expert_weight=True,
            swiglu_limits=[0.0, 0.0, 0.3, 0.3],
            swiglu_limits_shared=[0.4, 0.0, 0.0, 0.3],
            tie_word_embeddings=False,
        ),
        "ministral3": dict(
            base,
            **gqa,
            model_type="ministral3",
            num_hidden_layers=4,
            rope_parameters=dict(
                rope_type="yarn",
                rope_theta=1e6,
                factor=4.0,
                original_max_position_embeddings=16,
                beta_fast=32.0,
                beta_slow=1.0,
                mscale=1.0,
                mscale_all_dim=1.0,
                llama_4_scaling_beta=0.5,
            ),
            layer_types=sliding,
            sliding_window=12,
            tie_word_embeddings=False,
        ),
        "mistral": dict(
            base, **gqa, model_type="mistral", num_hidden_layers=2, rope_theta=1e6, tie_word_embeddings=False
        ),
        "qwen2": dict(
            base,
            model_type="qwen2",
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            rope_theta=1e6,
            tie_word_embeddings=True,
        ),
        "qwen3": dict(base, **gqa, model_type="qwen3", num_hidden_layers=3, rope_theta=1e6, tie_word_embeddings=True),
        "qwen3_untied": dict(
            base,
            model_type="qwen3",
            num_attention_heads=8,
            num_key_value_heads=2,
            head_dim=64,
            num_hidden_layers=2,
            rope_theta=1e6,
            tie_word_embeddings=False,
        ),
        "qwen3_moe": dict(
            base,
            **gqa,
            model_type="qwen3_moe",
            num_hidden_layers=3,
            rope_theta=1e6,
            tie_word_embeddings=False,
            num_experts=8,
            num_experts_per_tok=2,
            moe_intermediate_size=64,
            norm_topk_prob=True,
            decoder_sparse_step=1,
            mlp_only_layers=[1],
        ),
        "qwen3_next": dict(
            base,
            **gqa,
            **delta(4, 8, 32, 16),
            model_type="qwen3_next",
            num_hidden_layers=4,
            full_attention_interval=2,
            rope_theta=1e6,
            partial_rotary_factor=0.25,
            tie_word_embeddings=False,
            num_experts=8,
            num_experts_per_tok=3,
            moe_intermediate_size=64,
            shared_expert_intermediate_size=128,
            norm_topk_prob=True,
            decoder_sparse_step=1,
            mlp_only_layers=[2],
        ),
        "lfm2": dict(
            lfm2,
            num_hidden_layers=4,
            conv_bias=False,
            conv_L_cache=3,
            block_auto_adjust_ff_dim=True,
            layer_types=["conv", "conv", "full_attention", "conv"],
        ),
        "lfm2_moe": dict(
            lfm2,
            model_type="lfm2_moe",
            num_hidden_layers=4,
            intermediate_size=192,
            conv_bias=False,
            conv_L_cache=3,
            block_auto_adjust_ff_dim=False,
            layer_types=["conv", "full_attention", "conv", "full_attention"],
            num_experts=8,
            num_experts_per_tok=2,
            moe_intermediate_size=64,
            norm_topk_prob=True,
            use_expert_bias=True,
            num_dense_layers=1,
        ),
        "lfm2_bias": dict(
            lfm2,
            num_hidden_layers=3,
            conv_bias=True,
            conv_L_cache=4,
            block_auto_adjust_ff_dim=False,
            full_attn_idxs=[0, 2],
        ),
    }
    qwen3_5 = dict(
        base,
        **gqa,
        num_hidden_layers=3,
        full_attention_interval=3,
        layer_types=["linear_attention", "linear_attention", "full_attention"],
        attn_output_gate=True,
        rope_parameters=dict(
            rope_type="default",
            rope_theta=1e6,
            partial_rotary_factor=0.25,
            mrope_section=[2, 1, 1],
            mrope_interleaved=True,
        ),
    )
    families["qwen3_5"] = dict(
        model_type="qwen3_5",
        text_config=dict(qwen3_5, **delta(2, 6, 16, 32), model_type="qwen3_5_text", tie_word_embeddings=True),
    )
    families["qwen3_5_moe"] = dict(
        model_type="qwen3_5_moe",
        text_config=dict(
            qwen3_5,
            **delta(4, 4, 32, 32),
            model_type="qwen3_5_moe_text",
            tie_word_embeddings=False,
            num_experts=6,
            num_experts_per_tok=2,
            moe_intermediate_size=64,
            shared_expert_intermediate_size=64,
        ),
    )
    families |= ssd_families()
    families |= linear_attention.families(base)
    # A model that sees: the text model of another config, under other names, beside what is left out.
    families["gemma3"] = dict(
        model_type="gemma3", vocab_size=VOCAB, text_config=families["gemma3_text"], vision_config=dict(hidden_size=8)
    )
    families["step3p5_published"] = dict(families["step3p5"], is_published=True, has_plain_routers=True)
    families["gemma4"] = dict(
        model_type="gemma4", vocab_size=VOCAB, text_config=families["gemma4_shared"], vision_config=dict(hidden_size=8)
    )
    m3 = dict(
        base,
        **gqa,
        model_type="minimax_m3_vl_text",
        num_hidden_layers=4,
        intermediate_size=64,
        dense_intermediate_size=192,
        shared_intermediate_size=64,
        num_local_experts=8,
        num_experts_per_tok=3,
        n_shared_experts=1,
        hidden_act="swigluoai",
        tie_word_embeddings=False,
    )
    m3_published = dict(
        m3,
        rope_theta=5e6,
        rotary_dim=16,
        use_gemma_norm=True,
        attention_output_gate=False,
        scoring_func="sigmoid",
        moe_layer_freq=[0, 1, 1, 1],
        sparse_attention_config=dict(
            use_sparse_attention=True,
            sparse_num_index_heads=2,
            sparse_index_dim=48,
            sparse_block_size=8,
            sparse_topk_blocks=3,
            sparse_init_block=0,
            sparse_local_block=1,
            sparse_score_type="max",
            sparse_attention_freq=[0, 1, 1, 1],
            sparse_disable_index_value=[0, 1, 1, 1],
        ),
    )
    m3_flat = dict(
        m3,
        model_type="minimax_m3",
        rope_parameters=dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.25),
        use_gemma_norm=False,
        mlp_layer_types=["dense", "sparse", "dense", "sparse"],
        layer_types=["full_attention", "minimax_m3_sparse", "minimax_m3_sparse", "minimax_m3_sparse"],
        index_n_heads=2,
        index_head_dim=32,
        index_block_size=16,
        index_topk_blocks=2,
        index_local_blocks=1,
        pack_shared_expert=True,
    )
    for name, text in (("minimax_m3", m3_published), ("minimax_m3_flat", m3_flat)):
        families[name] = dict(
            model_type="minimax_m3_vl", vocab_size=VOCAB, text_config=text, vision_config=dict(hidden_size=8)
        )
    families["kimi_k25"] = dict(
        model_type="kimi_k25",
        vocab_size=VOCAB,
        text_config=dict(families["deepseek_v3"], model_type="kimi_k2", n_group=1, topk_group=1),
        vision_config=dict(hidden_size=8),
    )
    return families


def ssd_families():
    """Mamba 2 and its hybrids: one group and several, patterns as strings and as lists, all biases and none."""
    sizes = dict(
        hidden_size=HIDDEN,
        vocab_size=VOCAB,
        max_position_embeddings=4096,
        intermediate_size=192,
        layer_norm_epsilon=1e-5,
        conv_kernel=4,
        use_conv_bias=True,
    )
    mamba2 = dict(sizes, model_type="mamba2", num_hidden_layers=3, time_step_rank="auto")
    nemotron = dict(
        sizes,
        model_type="nemotron_h",
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        mamba_num_heads=8,
        mamba_head_dim=16,
        ssm_state_size=16,
        attention_bias=False,
        mamba_proj_bias=False,
        mlp_bias=False,
        use_bias=False,
        mlp_hidden_act="relu2",
        tie_word_embeddings=False,
    )
    experts = dict(
        n_routed_experts=8,
        n_shared_experts=1,
        num_experts_per_tok=3,
        moe_intermediate_size=64,
        norm_topk_prob=True,
        routed_scaling_factor=2.5,
    )
    return {
        "mamba2": dict(
            mamba2,
            num_heads=8,
            head_dim=32,
            state_size=24,
            n_groups=1,
            use_bias=False,
            time_step_limit=[0.0, float("inf")],
            tie_word_embeddings=True,
        ),
        "mamba2_groups": dict(
            mamba2,
            num_heads=4,
            head_dim=32,
            state_size=16,
            n_groups=2,
            use_bias=True,
            time_step_limit=[0.5, 0.8],
            tie_word_embeddings=False,
        ),
        "nemotron_h": dict(
            nemotron,
            **experts,
            num_hidden_layers=6,
            hybrid_override_pattern="M*E-ME",
            n_groups=2,
            n_group=4,
            topk_group=2,
            moe_shared_expert_intermediate_size=128,
            time_step_limit=[0.0, float("inf")],
        ),
        "nemotron_h_dense": dict(
            nemotron,
            num_hidden_layers=4,
            hybrid_override_pattern=list("M-*M"),
            n_groups=1,
            time_step_limit=[0.4, 0.9],
            attention_bias=True,
            mamba_proj_bias=True,
            mlp_bias=True,
        ),
        "nemotron_h_latent": dict(
            nemotron,
            **experts,
            layers_block_type=["mamba", "moe", "attention", "moe"],
            n_groups=4,
            n_group=1,
            topk_group=1,
            moe_latent_size=64,
            moe_shared_expert_intermediate_size=64,
        ),
    }


def experts_of(config, layer):
    """(block, experts, width of each) of a layer that has some, else None."""
    kind = config["model_type"]
    if kind in linear_attention.KINDS:
        moe = ("mlp", config["num_experts"], config["moe_intermediate_size"])
        return moe if linear_attention.has_experts(config, layer) else None
    if kind == "gpt_oss":
        return "mlp", config["num_local_experts"], config["intermediate_size"]
    if kind == "lfm2_moe":
        moe = ("feed_forward", config["num_experts"], config["moe_intermediate_size"])
        return moe if layer >= config["num_dense_layers"] else None
    if kind == "step3p5":
        moe = ("mlp", config["moe_num_experts"], config["moe_intermediate_size"])
        return moe if str(layer) in config["moe_layers_enum"].split(",") else None
    if not config.get("is_moe_layer", [True] * (layer + 1))[layer]:
        return None
    if kind in M3:
        has_experts = "sparse" in config.get("mlp_layer_types", ["sparse"] * (layer + 1))[layer]
        moe = ("block_sparse_moe", config["num_local_experts"], config["intermediate_size"])
        return moe if has_experts and config.get("moe_layer_freq", [1] * (layer + 1))[layer] else None
    if kind in ("minimax", "mixtral"):
        return "block_sparse_moe", config["num_local_experts"], config["intermediate_size"]
    if layer >= config.get("first_k_dense_replace", layer + 1) and layer % config.get("moe_layer_freq", 1) == 0:
        return "mlp", config["n_routed_experts"], config["moe_intermediate_size"]
    if "num_experts" in config and layer not in config.get("mlp_only_layers", []):
        return "mlp", config["num_experts"], config["moe_intermediate_size"]
    return None


def is_delta(config):
    return config["model_type"].startswith(("qwen3_next", "qwen3_5"))


def quantization(config, variant):
    """As mlx-lm writes it: routers have 8 bits, or stay as they are where they are no linear layers."""
    if variant in MODES:
        group, bits = MODES[variant]
        whole = dict(group_size=group, bits=bits, mode=variant)
    else:
        whole = dict(group_size=VARIANTS[variant], bits=4)
    if config["model_type"] in (*PLAIN_ROUTERS, *SSD):
        return whole
    layers = range(config.get("num_hidden_layers", config.get("num_layers")))
    if config["model_type"] == "longcat_flash":
        return whole | {f"model.layers.{i}.mlp.router.classifier": dict(group_size=64, bits=8) for i in layers}
    if config["model_type"] == "gemma4_text":
        routers = [f"model.layers.{i}.router.proj" for i in layers if config.get("enable_moe_block")]
        return whole | {router: dict(group_size=64, bits=8) for router in routers}
    if config.get("has_plain_routers"):
        return whole
    names = {"gpt_oss": "router", "step3p5": "gate.gate", "bailing_hybrid": "gate.gate_proj"}
    name = names.get(config["model_type"], "gate")
    blocks = [f"model.layers.{i}.{experts_of(config, i)[0]}" for i in layers if experts_of(config, i)]
    routers = [f"{block}.{name}" for block in blocks]
    if is_delta(config):
        routers += [f"{block}.shared_expert_gate" for block in blocks]
    return whole | {router: dict(group_size=64, bits=8) for router in routers}


def shared_expert(config):
    """The linear layers of the expert that every token takes."""
    if config["model_type"] == "qwen2_moe" or is_delta(config):
        name, width = "mlp.shared_expert", config["shared_expert_intermediate_size"]
        extra = [("mlp.shared_expert_gate", 1, HIDDEN, False)]
    elif config["model_type"] in M3:
        name, width, extra = "block_sparse_moe.shared_experts", config["shared_intermediate_size"], []
    elif config["model_type"] in GROUPED:
        times = config.get("n_shared_experts", config.get("num_shared_experts"))
        name, width = "mlp.shared_experts", times * config["moe_intermediate_size"]
        extra = []
    else:
        return []
    return extra + [
        (f"{name}.gate_proj", width, HIDDEN, False),
        (f"{name}.up_proj", width, HIDDEN, False),
        (f"{name}.down_proj", HIDDEN, width, False),
    ]


def lfm2_shapes(config):
    head_dim = HIDDEN // config["num_attention_heads"]
    kv, taps = config["num_key_value_heads"] * head_dim, config["conv_L_cache"]
    mlp = config["block_ff_dim"] * 2 // 3 if config["block_auto_adjust_ff_dim"] else config["block_ff_dim"]
    attends = [kind == "full_attention" for kind in config.get("layer_types", [])]
    out = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "model.embedding_norm.weight": (HIDDEN,)}
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        if not (attends[i] if attends else i in config["full_attn_idxs"]):
            out[f"{p}conv.in_proj.weight"] = (3 * HIDDEN, HIDDEN)
            out[f"{p}conv.conv.weight"] = (HIDDEN, taps, 1)
            out[f"{p}conv.out_proj.weight"] = (HIDDEN, HIDDEN)
            if config["conv_bias"]:
                for name, rows in (("in_proj", 3 * HIDDEN), ("conv", HIDDEN), ("out_proj", HIDDEN)):
                    out[f"{p}conv.{name}.bias"] = (rows,)
        else:
            for name, rows in (("q_proj", HIDDEN), ("k_proj", kv), ("v_proj", kv), ("out_proj", HIDDEN)):
                out[f"{p}self_attn.{name}.weight"] = (rows, HIDDEN)
            out[f"{p}self_attn.q_layernorm.weight"] = out[f"{p}self_attn.k_layernorm.weight"] = (head_dim,)
        moe = experts_of(config, i)
        if moe:
            _, experts, width = moe
            out[f"{p}feed_forward.gate.weight"] = (experts, HIDDEN)
            out[f"{p}feed_forward.expert_bias"] = (experts,)
            for name, rows, columns in (("gate", width, HIDDEN), ("up", width, HIDDEN), ("down", HIDDEN, width)):
                out[f"{p}feed_forward.switch_mlp.{name}_proj.weight"] = (experts, rows, columns)
        elif config["model_type"] == "lfm2_moe":
            out[f"{p}feed_forward.gate_proj.weight"] = out[f"{p}feed_forward.up_proj.weight"] = (mlp, HIDDEN)
            out[f"{p}feed_forward.down_proj.weight"] = (HIDDEN, mlp)
        else:
            out[f"{p}feed_forward.w1.weight"] = out[f"{p}feed_forward.w3.weight"] = (mlp, HIDDEN)
            out[f"{p}feed_forward.w2.weight"] = (HIDDEN, mlp)
        out[f"{p}operator_norm.weight"] = out[f"{p}ffn_norm.weight"] = (HIDDEN,)
    return out


def gemma4_shapes(config):
    layers, told = config["num_hidden_layers"], config["hidden_size_per_layer_input"]
    first_shared = layers - config["num_kv_shared_layers"]
    out = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,)}
    if told:
        out["model.embed_tokens_per_layer.weight"] = (VOCAB, layers * told)
        out["model.per_layer_model_projection.weight"] = (layers * told, HIDDEN)
        out["model.per_layer_projection_norm.weight"] = (told,)
    for i in range(layers):
        p, is_window = f"model.layers.{i}.", config["layer_types"][i] == "sliding_attention"
        has_equal_kv = config.get("attention_k_eq_v", False) and not is_window
        head_dim = config["head_dim" if is_window else "global_head_dim"]
        q = config["num_attention_heads"] * head_dim
        kv = config["num_global_key_value_heads" if has_equal_kv else "num_key_value_heads"] * head_dim
        mlp = config["intermediate_size"] * (2 if i >= first_shared and config.get("use_double_wide_mlp") else 1)
        linear = {"self_attn.q_proj": (q, HIDDEN), "self_attn.o_proj": (HIDDEN, q)}
        norms = {"self_attn.q_norm": head_dim}
        if i < first_shared:
            linear["self_attn.k_proj"], norms["self_attn.k_norm"] = (kv, HIDDEN), head_dim
            if not has_equal_kv:
                linear["self_attn.v_proj"] = (kv, HIDDEN)
        linear |= {"mlp.gate_proj": (mlp, HIDDEN), "mlp.up_proj": (mlp, HIDDEN), "mlp.down_proj": (HIDDEN, mlp)}
        if told:
            linear |= {"per_layer_input_gate": (told, HIDDEN), "per_layer_projection": (HIDDEN, told)}
            norms["post_per_layer_input_norm"] = HIDDEN
        for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            norms[f"{norm}_layernorm"] = HIDDEN
        if config.get("enable_moe_block"):
            experts, width = config["num_experts"], config["moe_intermediate_size"]
            linear["router.proj"] = (experts, HIDDEN)
            for name, rows, columns in (("gate", width, HIDDEN), ("up", width, HIDDEN), ("down", HIDDEN, width)):
                linear[f"experts.switch_glu.{name}_proj"] = (experts, rows, columns)
            out[f"{p}router.scale"], out[f"{p}router.per_expert_scale"] = (HIDDEN,), (experts,)
            for norm in ("pre_feedforward_layernorm_2", "post_feedforward_layernorm_1", "post_feedforward_layernorm_2"):
                norms[norm] = HIDDEN
        out |= {f"{p}{name}.weight": shape for name, shape in linear.items()}
        out |= {f"{p}{name}.weight": (width,) for name, width in norms.items()}
        out[f"{p}layer_scalar"] = (1,)
    return out


def ssd_shapes(config):
    """Of all layers of mamba2 and nemotron_h."""
    is_hybrid = config["model_type"] == "nemotron_h"
    types = dict(mamba="M", attention="*", mlp="-", moe="E")
    kinds = config.get("hybrid_override_pattern") or [types[t] for t in config.get("layers_block_type", [])]
    out = {"backbone.embeddings.weight": (VOCAB, HIDDEN), "backbone.norm_f.weight": (HIDDEN,)}
    if not config["tie_word_embeddings"]:
        out["lm_head.weight"] = (VOCAB, HIDDEN)
    heads = config["mamba_num_heads" if is_hybrid else "num_heads"]
    inner = heads * config["mamba_head_dim" if is_hybrid else "head_dim"]
    columns = inner + 2 * config["n_groups"] * config["ssm_state_size" if is_hybrid else "state_size"]
    bias = config["mamba_proj_bias" if is_hybrid else "use_bias"]
    for i, kind in enumerate(kinds or "M" * config["num_hidden_layers"]):
        p, linear = f"backbone.layers.{i}.mixer.", []
        out[f"backbone.layers.{i}.norm.weight"] = (HIDDEN,)
        if kind == "M":
            linear = [("in_proj", inner + columns + heads, HIDDEN, bias), ("out_proj", HIDDEN, inner, bias)]
            out[f"{p}conv1d.weight"], out[f"{p}conv1d.bias"] = (columns, config["conv_kernel"], 1), (columns,)
            out |= {f"{p}{name}": (heads,) for name in ("A_log", "D", "dt_bias")}
            out[f"{p}norm.weight"] = (inner,)
        elif kind == "*":
            q, kv = (config[f"num_{name}_heads"] * config["head_dim"] for name in ("attention", "key_value"))
            rows = {"q": q, "k": kv, "v": kv}
            linear = [(f"{name}_proj", n, HIDDEN, config["attention_bias"]) for name, n in rows.items()]
            linear.append(("o_proj", HIDDEN, q, config["attention_bias"]))
        elif kind == "-":
            mlp = config["intermediate_size"]
            linear = [("up_proj", mlp, HIDDEN, config["mlp_bias"]), ("down_proj", HIDDEN, mlp, config["mlp_bias"])]
        else:
            experts, width, latent = (
                config.get(k) for k in ("n_routed_experts", "moe_intermediate_size", "moe_latent_size")
            )
            shared = config["moe_shared_expert_intermediate_size"]
            linear = [("gate", experts, HIDDEN, False)]
            linear += [
                (f"shared_experts.{name}_proj", *shape, False)
                for name, shape in (("up", (shared, HIDDEN)), ("down", (HIDDEN, shared)))
            ]
            if latent:
                linear += [("fc1_latent_proj", latent, HIDDEN, False), ("fc2_latent_proj", HIDDEN, latent, False)]
            out[f"{p}switch_mlp.fc1.weight"] = (experts, width, latent or HIDDEN)
            out[f"{p}switch_mlp.fc2.weight"] = (experts, latent or HIDDEN, width)
            out[f"{p}gate.e_score_correction_bias"] = (experts,)
        for name, rows, inputs, has_bias in linear:
            out[f"{p}{name}.weight"] = (rows, inputs)
            if has_bias:
                out[f"{p}{name}.bias"] = (rows,)
    return out


def delta_shapes(config):
    """Of a layer that attends by the gated delta rule."""
    key_heads, value_heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    keys, value_dim = key_heads * config["linear_key_head_dim"], config["linear_value_head_dim"]
    values = value_heads * value_dim
    if config["model_type"] == "qwen3_next":
        projections = {"qkvz": 2 * (keys + values), "ba": 2 * value_heads}
    else:
        projections = {"qkv": 2 * keys + values, "z": values, "b": value_heads, "a": value_heads}
    out = {f"in_proj_{name}.weight": (rows, HIDDEN) for name, rows in projections.items()}
    return out | {
        "conv1d.weight": (2 * keys + values, config["linear_conv_kernel_dim"], 1),
        "A_log": (value_heads,),
        "dt_bias": (value_heads,),
        "norm.weight": (value_dim,),
        "out_proj.weight": (HIDDEN, values),
    }


def attends(config, layer):
    return not is_delta(config) or (layer + 1) % config["full_attention_interval"] == 0


def has_kv_b(config):
    return config["model_type"] == "deepseek_v2" or config["q_lora_rank"] is None


def latent_attention(config):
    """([linear layer], {other tensor: shape}) of latent attention, below self_attn."""
    heads, bias = config["num_attention_heads"], config["attention_bias"]
    latent, value = config["kv_lora_rank"], config["v_head_dim"]
    nope, rope, rank = config["qk_nope_head_dim"], config["qk_rope_head_dim"], config["q_lora_rank"]
    linear = [("kv_a_proj_with_mqa", latent + rope, HIDDEN, bias), ("o_proj", HIDDEN, heads * value, bias)]
    other = {"kv_a_layernorm.weight": (latent,)}
    if rank is None:
        linear.append(("q_proj", heads * (nope + rope), HIDDEN, False))
    else:
        linear += [("q_a_proj", rank, HIDDEN, bias), ("q_b_proj", heads * (nope + rope), rank, False)]
        other["q_a_layernorm.weight"] = (rank,)
    if "index_topk" in config:
        index, width = config["index_n_heads"], config["index_head_dim"]
        linear += [
            ("indexer.wq_b", index * width, rank, False),
            ("indexer.wk", width, HIDDEN, False),
            ("indexer.weights_proj", index, HIDDEN, False),
        ]
        other |= {"indexer.k_norm.weight": (width,), "indexer.k_norm.bias": (width,)}
    if has_kv_b(config):
        linear.append(("kv_b_proj", heads * (nope + value), latent, False))
    else:
        other |= {"embed_q.weight": (heads, latent, nope), "unembed_out.weight": (heads, value, latent)}
    return [(f"self_attn.{name}", *rest) for name, *rest in linear], {
        f"self_attn.{name}": shape for name, shape in other.items()
    }


def index_heads(config, layer):
    """([linear layer], {other tensor: shape}) of a layer of minimax_m3 that chooses blocks of keys."""
    sparse = config.get("sparse_attention_config", {})
    heads = sparse.get("sparse_num_index_heads", config.get("index_n_heads"))
    width = sparse.get("sparse_index_dim", config.get("index_head_dim"))
    is_sparse = sparse["sparse_attention_freq"][layer] if sparse else "sparse" in config["layer_types"][layer]
    if not is_sparse:
        return [], {}
    linear = [
        ("self_attn.index_q_proj", heads * width, HIDDEN, False),
        ("self_attn.index_k_proj", width, HIDDEN, False),
    ]
    return linear, {f"self_attn.index_{side}_norm.weight": (width,) for side in "qk"}


def step3p5_shapes(config):
    out = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,)}
    out["lm_head.weight"] = (VOCAB, HIDDEN)
    for i, kind in enumerate(config["layer_types"]):
        p, head_dim = f"model.layers.{i}.", config["head_dim"]
        heads = config["attention_other_setting"] if kind == "sliding_attention" else config
        q, kv = heads["num_attention_heads"] * head_dim, heads["num_attention_groups"] * head_dim
        out[f"{p}self_attn.q_proj.weight"], out[f"{p}self_attn.o_proj.weight"] = (q, HIDDEN), (HIDDEN, q)
        out[f"{p}self_attn.k_proj.weight"] = out[f"{p}self_attn.v_proj.weight"] = (kv, HIDDEN)
        out[f"{p}self_attn.g_proj.weight"] = (heads["num_attention_heads"], HIDDEN)
        out[f"{p}self_attn.q_norm.weight"] = out[f"{p}self_attn.k_norm.weight"] = (head_dim,)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            out[f"{p}{norm}.weight"] = (HIDDEN,)
        moe = experts_of(config, i)
        blocks = [("mlp", (), config["intermediate_size"])]
        if moe:
            _, experts, width = moe
            out[f"{p}mlp.gate.gate.weight"], out[f"{p}mlp.gate.router_bias"] = (experts, HIDDEN), (experts,)
            blocks = [("mlp.switch_mlp", (experts,), width), ("mlp.share_expert", (), config["share_expert_dim"])]
        for block, several, width in blocks:
            out[f"{p}{block}.gate_proj.weight"] = out[f"{p}{block}.up_proj.weight"] = (*several, width, HIDDEN)
            out[f"{p}{block}.down_proj.weight"] = (*several, HIDDEN, width)
    return out


def block_shapes(block, width, experts=()):
    """Of a gated MLP, or of several."""
    up, down = (*experts, width, HIDDEN), (*experts, HIDDEN, width)
    return {f"{block}.{name}_proj.weight": down if name == "down" else up for name in ("gate", "up", "down")}


def longcat_shapes(config):
    out = {name: (VOCAB, HIDDEN) for name in ("model.embed_tokens.weight", "lm_head.weight")}
    out["model.norm.weight"] = (HIDDEN,)
    experts, choices = config["n_routed_experts"], config["n_routed_experts"] + config["zero_expert_num"]
    linear, other = latent_attention(config)
    attention = {f"{name}.weight": (rows, columns) for name, rows, columns, _ in linear} | other
    for i in range(config["num_layers"]):
        p = f"model.layers.{i}."
        for half in range(2):
            out |= {p + name.replace("self_attn", f"self_attn.{half}"): shape for name, shape in attention.items()}
            out |= block_shapes(f"{p}mlps.{half}", config["ffn_hidden_size"])
            for norm in ("input_layernorm", "post_attention_layernorm"):
                out[f"{p}{norm}.{half}.weight"] = (HIDDEN,)
        out |= block_shapes(f"{p}mlp.switch_mlp", config["expert_ffn_hidden_size"], (experts,))
        out[f"{p}mlp.router.classifier.weight"] = (choices, HIDDEN)
        out[f"{p}mlp.router.e_score_correction_bias"] = (choices,)
    return out


def mimo_v2_shapes(config):
    out = {name: (VOCAB, HIDDEN) for name in ("model.embed_tokens.weight", "lm_head.weight")}
    out["model.norm.weight"] = (HIDDEN,)
    for i, is_window in enumerate(config["hybrid_layer_pattern"]):
        p, kind = f"model.layers.{i}.", "swa_" if is_window else ""
        heads, kv_heads = config[f"{kind}num_attention_heads"], config[f"{kind}num_key_value_heads"]
        key, value = config[f"{kind}head_dim"], config[f"{kind}v_head_dim"]
        out[f"{p}self_attn.q_proj.weight"] = (heads * key, HIDDEN)
        out[f"{p}self_attn.k_proj.weight"] = (kv_heads * key, HIDDEN)
        out[f"{p}self_attn.v_proj.weight"] = (kv_heads * value, HIDDEN)
        out[f"{p}self_attn.o_proj.weight"] = (HIDDEN, heads * value)
        if config["add_swa_attention_sink_bias" if is_window else "add_full_attention_sink_bias"]:
            out[f"{p}self_attn.attention_sink_bias"] = (heads,)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            out[f"{p}{norm}.weight"] = (HIDDEN,)
        if not config["moe_layer_freq"][i]:
            out |= block_shapes(f"{p}mlp", config["intermediate_size"])
            continue
        experts = config["n_routed_experts"]
        out |= block_shapes(f"{p}mlp.switch_mlp", config["moe_intermediate_size"], (experts,))
        out[f"{p}mlp.gate.weight"], out[f"{p}mlp.gate.e_score_correction_bias"] = (experts, HIDDEN), (experts,)
    return out


def shapes(config):
    """Tensor name → shape, as mlx-lm names them."""
    if config["model_type"] == "longcat_flash":
        return longcat_shapes(config)
    if config["model_type"] == "mimo_v2_flash":
        return mimo_v2_shapes(config)
    if config["model_type"] == "gemma4_text":
        return gemma4_shapes(config)
    if config["model_type"] == "step3p5":
        return step3p5_shapes(config)
    if config["model_type"] in SSD:
        return ssd_shapes(config)
    if config["model_type"] in linear_attention.KINDS:
        return linear_attention.shapes(config)
    if config["model_type"] in ("lfm2", "lfm2_moe"):
        return lfm2_shapes(config)
    head_dim = config.get("head_dim", HIDDEN // config["num_attention_heads"])
    q, kv = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    mlp, kind = config.get("dense_intermediate_size", config["intermediate_size"]), config["model_type"]
    qkv_bias = config.get("attention_bias", kind in ("qwen2", "qwen2_moe"))
    out_bias = config.get("attention_bias", False) and kind not in ("glm4_moe", "mimo", "seed_oss")
    mlp_bias = config.get("mlp_bias", False)
    out = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,)}
    if not config["tie_word_embeddings"]:
        out["lm_head.weight"] = (VOCAB, HIDDEN)
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        linear = [
            ("self_attn.q_proj", 2 * q if is_delta(config) else q, HIDDEN, qkv_bias),
            ("self_attn.k_proj", kv, HIDDEN, qkv_bias),
            ("self_attn.v_proj", kv, HIDDEN, qkv_bias),
            ("self_attn.o_proj", HIDDEN, q, out_bias),
        ]
        if kind in LATENT:
            linear, other = latent_attention(config)
            out |= {p + name: shape for name, shape in other.items()}
        elif kind == "phi3":
            linear = [("self_attn.qkv_proj", q + 2 * kv, HIDDEN, False), linear[3]]
        elif kind in M3:
            index, norms = index_heads(config, i)
            linear += index
            out |= {p + name: shape for name, shape in norms.items()}
        if not attends(config, i):
            linear = []
            out |= {f"{p}linear_attn.{name}": shape for name, shape in delta_shapes(config).items()}
        moe = experts_of(config, i)
        if moe:
            block, experts, width = moe
            is_oss = kind == "gpt_oss"
            linear.append((f"{block}.router" if is_oss else f"{block}.gate", experts, HIDDEN, is_oss))
            for name, rows, columns in (("gate", width, HIDDEN), ("up", width, HIDDEN), ("down", HIDDEN, width)):
                place = f"{p}{block}.{'experts' if is_oss else 'switch_mlp'}.{name}_proj"
                out[f"{place}.weight"] = (experts, rows, columns)
                if is_oss:
                    out[f"{place}.bias"] = (experts, rows)
            if is_oss:
                out[f"{p}self_attn.sinks"] = (config["num_attention_heads"],)
            linear += shared_expert(config)
            if kind in SCORE_BIASES:
                out[f"{p}{block}.{SCORE_BIASES[kind]}"] = (experts,)
        elif kind == "phi3":
            linear += [("mlp.gate_up_proj", 2 * mlp, HIDDEN, False), ("mlp.down_proj", HIDDEN, mlp, False)]
        else:
            linear += [
                ("mlp.gate_proj", mlp, HIDDEN, mlp_bias),
                ("mlp.up_proj", mlp, HIDDEN, mlp_bias),
                ("mlp.down_proj", HIDDEN, mlp, mlp_bias),
            ]
        for name, rows, columns, has_bias in linear:
            out[f"{p}{name}.weight"] = (rows, columns)
            if has_bias:
                out[f"{p}{name}.bias"] = (rows,)
        norms = ["input_layernorm", "post_attention_layernorm"]
        if kind.startswith("gemma"):
            norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
        for norm in norms:
            out[f"{p}{norm}.weight"] = (HIDDEN,)
        if kind == "minimax":
            out[f"{p}self_attn.q_norm.weight"], out[f"{p}self_attn.k_norm.weight"] = (q,), (kv,)
        has_qk_norm = kind in ("qwen3", "qwen3_moe", "gemma3_text", "glm4_moe", "exaone_moe", *M3)
        if has_qk_norm or (is_delta(config) and attends(config, i)):
            out[f"{p}self_attn.q_norm.weight"] = out[f"{p}self_attn.k_norm.weight"] = (head_dim,)
    return out


def draw(name, shape):
    generator = np.random.Generator(np.random.PCG64([SEED, zlib.crc32(name.encode())]))
    if name.endswith("A_log"):
        mean, deviation = -1.5, 0.5
    elif name.endswith("bias"):
        mean, deviation = 0.0, 0.1
    elif len(shape) == 1:
        mean, deviation = 1.0, 0.15
    elif any(table in name for table in ("embed_tokens", "embeddings", "lm_head")):
        mean, deviation = 0.0, 3.0 / HIDDEN**0.5
    else:
        mean, deviation = 0.0, 1.0 / shape[-1] ** 0.5
    return (mean + deviation * generator.standard_normal(shape)).astype(np.float32)


def quantize(weight, group, bits=4):
    """MLX's affine encoder of [..., rows, columns]: (packed codes, scales, biases)."""
    one, w = np.float32(1), weight.reshape(*weight.shape[:-1], -1, group)
    low, high = w.min(-1, keepdims=True), w.max(-1, keepdims=True)
    scale = np.maximum((high - low) / np.float32(2**bits - 1), np.float32(1e-7))
    is_low = np.abs(low) > np.abs(high)
    scale, edge = np.where(is_low, scale, -scale), np.where(is_low, low, high)
    first = np.rint(edge / scale)
    scale = np.where(first != 0, edge / np.where(first != 0, first, one), scale)
    bias = np.where(first != 0, edge, np.float32(0))
    codes = (
        np.clip(np.rint((w - bias) / scale), 0, 2**bits - 1)
        .astype(np.uint32)
        .reshape(*weight.shape[:-1], -1, 32 // bits)
    )
    packed = (codes << (np.arange(32 // bits, dtype=np.uint32) * np.uint32(bits))).sum(-1, dtype=np.uint32)
    return packed, scale[..., 0].astype(np.float32), bias[..., 0].astype(np.float32)


def published_experts(name, value):
    """As transformers keeps gemma4's: gate above up in one tensor."""
    base, part = name.split(".switch_glu.")
    if part == "down_proj.weight":
        yield f"{base}.down_proj", value
    elif part == "gate_proj.weight":
        up = draw(name.replace("gate_proj", "up_proj"), value.shape)
        yield f"{base}.gate_up_proj", np.concatenate([value, up], axis=1)


def power_of_two(ratio):
    """E8M0: the exponent of the least power that is no less."""
    return np.clip(np.ceil(np.log2(np.maximum(ratio, 1e-30))) + 127, 1, 246).astype(np.uint8)


def float_values(exponent_bits, mantissa_bits):
    """The values of a small float's codes without a sign, in order; a NaN at the end of E4M3 stays out."""
    codes = np.arange(2 ** (exponent_bits + mantissa_bits) - (exponent_bits == 4))
    exponent, mantissa = codes >> mantissa_bits, codes & (2**mantissa_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    fraction = mantissa / 2**mantissa_bits
    return np.where(
        exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent.astype(float) - bias)
    )


def nearest(values, x):
    """Of each x >= 0, the index of the nearest value, the lower of two."""
    return np.searchsorted((values[1:] + values[:-1]) / 2, x).astype(np.uint8)


def micro_scale(weight, mode):
    """(packed codes, bytes of scales) of [..., rows, columns]."""
    group, bits = MODES[mode]
    w = weight.astype(np.float64).reshape(*weight.shape[:-1], -1, group)
    values = float_values(2, 1) if bits == 4 else float_values(4, 3)
    ratio = np.abs(w).max(-1) / values[-1]
    if mode == "nvfp4":
        fine = float_values(4, 3)
        scales = np.maximum(nearest(fine, ratio), 1)
        factor = fine[scales]
    else:
        scales = power_of_two(ratio)
        factor = 2.0 ** (scales.astype(float) - 127)
    codes = nearest(values, np.abs(w) / factor[..., None]) | ((w < 0) << (bits - 1)).astype(np.uint8)
    codes = codes.reshape(*weight.shape[:-1], -1)
    if bits == 4:
        codes = codes[..., ::2] | codes[..., 1::2] << 4
    return np.ascontiguousarray(codes).view(np.uint32), scales


def release(items):
    """gpt-oss' experts as published: blocks of 16 bytes, gate's and up's rows by turns, biases alike."""
    items = dict(items)
    for name in [n for n in items if ".experts.gate_proj." in n]:
        place, leaf = name.split(".gate_proj.")
        gate, up = items.pop(name), items.pop(f"{place}.up_proj.{leaf}")
        items[f"{place}.gate_up_proj.{leaf}"] = np.stack([gate, up], 2).reshape(len(gate), -1, *gate.shape[2:])
    for name in [n for n in items if ".experts." in n]:
        value, (module, leaf) = items.pop(name), name.rsplit(".", 1)
        if leaf == "weight":
            value = np.ascontiguousarray(value).view(np.uint8).reshape(*value.shape[:2], -1, 16)
        items[f"{module}_{'blocks' if leaf == 'weight' else leaf}"] = value
    return items.items()


def pack_experts(items):
    """minimax_m3 as mlx-vlm writes it: gate above up, the shared expert behind the others; MLPs where experts are."""
    items = {name.replace(".mlp.", ".block_sparse_moe."): value for name, value in items}
    for name in [n for n in items if ".switch_mlp." in n]:
        shared = items.pop(name.replace("switch_mlp", "shared_experts"))
        items[name] = np.concatenate([items[name], shared[None]])
    for name in [n for n in items if ".switch_mlp.gate_proj." in n]:
        both = [items.pop(name), items.pop(name.replace("gate_proj", "up_proj"))]
        items[name.replace("gate_proj", "gate_up_proj")] = np.concatenate(both, 1)
    return items.items()


def tensors(config, variant, is_released=False):
    if "text_config" in config:
        for name, value in tensors(config["text_config"], variant):
            yield f"language_model.{name}", value
        if "vision_config" in config:
            yield "vision_tower.patches.weight", draw("patches", (8, 8))
        return
    if config.get("is_published"):
        for name, value in tensors(dict(config, is_published=False), variant):
            for ours, theirs in PUBLISHED:
                name = name.replace(ours, theirs)
            yield name, value - 1 if "norm" in name else value
        return
    if config.get("pack_shared_expert"):
        yield from pack_experts(tensors(dict(config, pack_shared_expert=False), variant))
        return
    for name, shape in shapes(config).items():
        value = draw(name, shape)
        if config.get("use_gemma_norm") and "norm" in name:
            value = value - np.float32(1)
        is_kept = len(shape) == 1 or name.endswith((".conv.weight", ".conv1d.weight", ".bias"))
        is_kept |= is_released and ".experts." not in name
        is_kept |= config["model_type"] in PLAIN_ROUTERS and name.endswith("mlp.gate.weight")
        is_kept |= name.endswith("mixer.gate.weight") or linear_attention.is_dense(name)
        group = VARIANTS.get(variant)
        is_kept |= group is not None and shape[-1] % group != 0
        # The reference would quantize what it makes of this once more.
        is_kept |= config["model_type"] == "deepseek_v3" and name.endswith("kv_b_proj.weight")
        if variant == "f32" and ".switch_glu." in name:
            yield from published_experts(name, value)
            continue
        if variant == "f32" or is_kept:
            yield name, value
            continue
        module = name.removesuffix(".weight")
        whole = quantization(config, variant)
        own = whole.get(module, whole)
        if "mode" in own:
            packed, scales = micro_scale(value, own["mode"])
            yield from ((name, packed), (f"{module}.scales", scales))
            continue
        packed, scales, biases = quantize(value, own["group_size"], own["bits"])
        yield from ((name, packed), (f"{module}.scales", scales), (f"{module}.biases", biases))


def wrapped(settings, config):
    """With the modules' names where a text model lies inside another."""
    prefix = "language_model." if "text_config" in config else ""
    return {prefix + key if "." in key else key: value for key, value in settings.items()}


def upstream_ssd(items):
    """The same of Mamba 2 and its hybrids."""
    for name, value in items:
        block, _, projection = name.partition("switch_mlp.")
        if projection:
            own = "up_proj.weight" if projection == "fc1.weight" else "down_proj.weight"
            yield from ((f"{block}experts.{e}.{own}", one) for e, one in enumerate(value))
        else:
            yield name, np.moveaxis(value, 2, 1) if name.endswith("conv1d.weight") else value
    yield "mtp.layers.0.norm.weight", draw("mtp", (HIDDEN,))


def longcat_upstream(config, items):
    """Experts apart, heads' matrices in one, and a module that predicts further tokens."""
    heads = {}
    for name, value in items:
        block, _, projection = name.partition("switch_mlp.")
        if projection:
            yield from ((f"{block}experts.{e}.{projection}", one) for e, one in enumerate(value))
        elif name.endswith(("embed_q.weight", "unembed_out.weight")):
            heads[name] = value
        else:
            yield name, value
    for name in [n for n in heads if n.endswith("embed_q.weight")]:
        module = name.removesuffix("embed_q.weight")
        both = [heads[name].swapaxes(-1, -2), heads[f"{module}unembed_out.weight"]]
        yield f"{module}kv_b_proj.weight", np.concatenate(both, 1).reshape(-1, config["kv_lora_rank"])
    yield "model.mtp.embed_tokens.weight", draw("mtp", (VOCAB, HIDDEN))


def upstream(config, items):
    """The tensors as the models were released: other axes, norms without their 1, experts apart or fused, layers that
    predict further tokens."""
    kind = config["model_type"]
    if kind in SSD:
        yield from upstream_ssd(items)
        return
    if kind in linear_attention.KINDS:
        yield from linear_attention.upstream(config, items)
        return
    if kind == "longcat_flash":
        yield from longcat_upstream(config, items)
        return
    prefix = "model.language_model." if kind.startswith("qwen3_5") else "model."
    fused = {}
    for name, value in items:
        name = name.removeprefix("language_model.").replace("model.", prefix, 1)
        if name.endswith("conv1d.weight"):
            value = np.moveaxis(value, 2, 1)
        if name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight"):
            value = value - np.float32(1)
        block, _, projection = name.partition("switch_mlp.")
        if projection and kind == "qwen3_next":
            yield from ((f"{block}experts.{e}.{projection}", one) for e, one in enumerate(value))
        elif projection:
            fused[block, projection] = value
        else:
            yield name, value
    for block, projection in list(fused):
        if projection.startswith("gate"):
            both = [fused[block, f"{half}_proj.weight"] for half in ("gate", "up")]
            yield f"{block}experts.gate_up_proj", np.concatenate(both, 1)
            yield f"{block}experts.down_proj", fused[block, "down_proj.weight"]
    yield "mtp.fc.weight", draw("mtp", (HIDDEN, 2 * HIDDEN))
    if kind.startswith("qwen3_5"):
        yield "model.visual.patch_embed.proj.weight", draw("patches", (8, 8))


def write_safetensors(path, items):
    header, blobs, offset = {}, [], 0
    for name, value in sorted(items):
        data = np.ascontiguousarray(value).tobytes()
        dtype = {"float32": "F32", "int32": "I32", "uint32": "U32", "uint8": "U8", "int8": "F8_E4M3"}[str(value.dtype)]
        header[name] = dict(dtype=dtype, shape=list(value.shape), data_offsets=[offset, offset + len(data)])
        blobs.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    content = struct.pack("<Q", len(text)) + text + b"".join(blobs)
    path.write_bytes(content)
    return zlib.crc32(content)


def checkpoints():
    """(name, variant, config) of each."""
    families = architectures()
    for name, config in families.items():
        for variant in [*VARIANTS, *(MODES if name in MICRO_SCALED else [])]:
            yield name, variant, config
    for name in UPSTREAM:
        yield name, "upstream", families[name]
    yield RELEASED, "mxfp4", families["gpt_oss"]


def write_checkpoint(folder, config, items):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True))
    return write_safetensors(folder / "model.safetensors", items)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    sums = {}
    for name, variant, config in checkpoints():
        text = config.get("text_config", config)
        full, items = config, tensors(config, "f32" if variant == "upstream" else variant, name == RELEASED)
        if name == RELEASED:
            full, items = dict(config, quantization_config=dict(quant_method="mxfp4")), release(items)
        elif variant == "upstream":
            items = upstream(config, items)
        elif variant != "f32":
            full = dict(config, quantization=wrapped(quantization(text, variant), config))
        folder = arguments.out / f"{name}-{variant}"
        sums[folder.name] = write_checkpoint(folder, full, items)
    for name, (model, lay_out) in LAYOUTS.items():
        config = architectures()[model]
        laid_out, items = lay_out(config, dict(tensors(config, "f32")))
        sums[name] = write_checkpoint(arguments.out / name, laid_out, items.items())
    for model, quantizes in [(model, quantizes) for model in GGUF for quantizes in (False, True)]:
        config = architectures()[model]
        config = config.get("text_config", config)
        content = gguf_of(model, config, dict(tensors(config, "f32")), quantizes)
        path = arguments.out / f"{model}-{'q8_0' if quantizes else 'f32'}.gguf"
        path.write_bytes(content)
        sums[path.name] = zlib.crc32(content)
    record = HERE / "sums.json"
    if arguments.update:
        record.write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n")
    elif sums != json.loads(record.read_text()):
        print("this numpy draws other weights than the golden logits were made with", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
