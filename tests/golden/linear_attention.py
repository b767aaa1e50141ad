"""Tiny models whose layers attend to a state or to latent vectors: Kimi Linear, and Ling and Ring 2.5."""

import numpy as np

LATENT = dict(kv_lora_rank=64, qk_nope_head_dim=64, qk_rope_head_dim=16, v_head_dim=32, rope_theta=1e4)
EXPERTS = dict(num_experts=8, moe_intermediate_size=64)
KINDS = ("bailing_hybrid", "kimi_linear")


def families(base):
    """Name → config, of sizes that all families have alike."""
    kimi = dict(
        base, **LATENT, **EXPERTS, model_type="kimi_linear", num_hidden_layers=4, head_dim=32, model_max_length=4096
    )
    del kimi["max_position_embeddings"]
    bailing = dict(base, **LATENT, **EXPERTS, model_type="bailing_hybrid", head_dim=32, num_experts_per_tok=3)
    return {
        "kimi_linear": dict(
            kimi,
            num_attention_heads=4,
            num_key_value_heads=4,
            linear_attn_config=dict(
                kda_layers=[1, 3, 4], full_attn_layers=[2], num_heads=4, head_dim=64, short_conv_kernel_size=4
            ),
            q_lora_rank=None,
            mla_use_nope=True,
            num_experts_per_token=3,
            num_shared_experts=1,
            routed_scaling_factor=2.446,
            first_k_dense_replace=1,
            tie_word_embeddings=False,
        ),
        "kimi_linear_groups": dict(
            kimi,
            num_attention_heads=6,
            num_key_value_heads=1,
            linear_attn_config=dict(kda_layers=[2, 3], num_heads=6, head_dim=32, short_conv_kernel_size=3),
            num_experts_per_token=2,
            num_shared_experts=0,
            moe_router_activation_func="softmax",
            moe_renormalize=False,
            num_expert_group=4,
            topk_group=2,
            moe_layer_freq=2,
            tie_word_embeddings=True,
        ),
        "bailing_hybrid": dict(
            bailing,
            num_hidden_layers=4,
            num_nextn_predict_layers=1,
            layer_group_size=3,
            num_attention_heads=4,
            num_key_value_heads=4,
            group_norm_size=2,
            q_lora_rank=64,
            num_shared_experts=1,
            n_group=4,
            topk_group=2,
            first_k_dense_replace=1,
            routed_scaling_factor=2.5,
            tie_word_embeddings=False,
        ),
        "bailing_hybrid_bias": dict(
            bailing,
            num_hidden_layers=3,
            layer_group_size=2,
            num_attention_heads=6,
            num_key_value_heads=6,
            group_norm_size=1,
            partial_rotary_factor=1.0,
            rope_interleave=False,
            rope_scaling=dict(
                type="yarn", factor=4.0, original_max_position_embeddings=32, mscale=1.0, mscale_all_dim=0.7
            ),
            use_qk_norm=False,
            use_qkv_bias=True,
            num_shared_experts=1,
            moe_shared_expert_intermediate_size=128,
            score_function="softmax",
            moe_router_enable_expert_bias=False,
            norm_topk_prob=False,
            n_group=1,
            topk_group=1,
            first_k_dense_replace=0,
            routed_scaling_factor=1.0,
            tie_word_embeddings=True,
        ),
    }


def has_state(config, layer):
    if config["model_type"] == "kimi_linear":
        return layer + 1 in config["linear_attn_config"]["kda_layers"]
    group = config["layer_group_size"]
    return (layer + 1) % group != 0 and layer < config["num_hidden_layers"] // group * group


def has_experts(config, layer):
    return layer >= config.get("first_k_dense_replace", 0) and layer % config.get("moe_layer_freq", 1) == 0


def router(config):
    return "mlp.gate" if config["model_type"] == "kimi_linear" else "mlp.gate.gate_proj"


def is_dense(name):
    """Of matrices that mlx-lm does not quantize."""
    return name.endswith("A_log") or ".attention.embed_q." in name or ".attention.unembed_out." in name


def latent_shapes(config):
    heads, hidden, rank = config["num_attention_heads"], config["hidden_size"], config.get("q_lora_rank")
    latent, nope, rope, value = (config[k] for k in list(LATENT)[:4])
    out = {
        "kv_a_proj_with_mqa.weight": (latent + rope, hidden),
        "kv_a_layernorm.weight": (latent,),
        "embed_q.weight": (heads, latent, nope),
        "unembed_out.weight": (heads, value, latent),
        ("o_proj" if config["model_type"] == "kimi_linear" else "dense") + ".weight": (hidden, heads * value),
    }
    if rank:
        out["q_a_proj.weight"], out["q_a_layernorm.weight"] = (rank, hidden), (rank,)
    out["q_b_proj.weight" if rank else "q_proj.weight"] = (heads * (nope + rope), rank or hidden)
    if config.get("use_qkv_bias"):
        out |= {"kv_a_proj_with_mqa.bias": (latent + rope,), "dense.bias": (hidden,)}
    return out


def channel_shapes(config):
    own, hidden = config["linear_attn_config"], config["hidden_size"]
    heads, dim, taps = own["num_heads"], own["head_dim"], own["short_conv_kernel_size"]
    width = heads * dim
    out = {f"{x}_proj.weight": (width, hidden) for x in "qkv"} | {
        f"{x}_conv.conv.weight": (width, taps, 1) for x in "qkv"
    }
    for x in "fg":
        out[f"{x}_a_proj.weight"], out[f"{x}_b_proj.weight"] = (dim, hidden), (width, dim)
    return out | {
        "b_proj.weight": (heads, hidden),
        "A_log": (1, 1, heads, 1),
        "dt_bias": (width,),
        "o_norm.weight": (dim,),
        "o_proj.weight": (hidden, width),
    }


def lightning_shapes(config):
    hidden, dim = config["hidden_size"], config["head_dim"]
    width = config["num_attention_heads"] * dim
    out = {
        "query_key_value.weight": (3 * width, hidden),
        "g_proj.weight": (width, hidden),
        "g_norm.weight": (width,),
        "dense.weight": (hidden, width),
    }
    if config.get("use_qkv_bias"):
        out["query_key_value.bias"] = (3 * width,)
    if config.get("use_qk_norm", True):
        out |= {"query_layernorm.weight": (dim,), "key_layernorm.weight": (dim,)}
    return out


def mlp_shapes(config, block, width, several=()):
    hidden = config["hidden_size"]
    out = {f"{block}.{name}_proj.weight": (*several, width, hidden) for name in ("gate", "up")}
    return out | {f"{block}.down_proj.weight": (*several, hidden, width)}


def expert_shapes(config):
    experts, width, hidden = config["num_experts"], config["moe_intermediate_size"], config["hidden_size"]
    out = {f"{router(config)}.weight": (experts, hidden)} | mlp_shapes(config, "mlp.switch_mlp", width, (experts,))
    if config["num_shared_experts"]:
        shared = config.get("moe_shared_expert_intermediate_size", width * config["num_shared_experts"])
        out |= mlp_shapes(config, "mlp.shared_experts", shared)
    if config["model_type"] == "kimi_linear":
        out["mlp.e_score_correction_bias"] = (experts,)
    elif config.get("moe_router_enable_expert_bias", True):
        out["mlp.gate.expert_bias"] = (experts,)
    return out


def shapes(config):
    """Tensor name → shape, as mlx-lm names them."""
    is_kimi, hidden = config["model_type"] == "kimi_linear", config["hidden_size"]
    table = "embed_tokens" if is_kimi else "word_embeddings"
    out = {f"model.{table}.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    if not config["tie_word_embeddings"]:
        out["lm_head.weight"] = (config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        p, attention = f"model.layers.{i}.", "self_attn" if is_kimi else "attention"
        state = channel_shapes if is_kimi else lightning_shapes
        own = (state if has_state(config, i) else latent_shapes)(config)
        out |= {f"{p}{attention}.{name}": shape for name, shape in own.items()}
        mlp = (
            expert_shapes(config) if has_experts(config, i) else mlp_shapes(config, "mlp", config["intermediate_size"])
        )
        out |= {p + name: shape for name, shape in mlp.items()}
        out |= {f"{p}{norm}_layernorm.weight": (hidden,) for norm in ("input", "post_attention")}
    return out


def apart(block, projection, value, is_kimi):
    """Experts one by one."""
    name = projection.removesuffix("_proj.weight")
    name = dict(gate="w1", up="w3", down="w2")[name] if is_kimi else f"{name}_proj"
    yield from ((f"{block}experts.{e}.{name}.weight", one) for e, one in enumerate(value))


def upstream(config, items):
    """As the models were published: other names and axes, experts apart, keys and values from one matrix, and layers
    that predict further tokens."""
    is_kimi, latent = config["model_type"] == "kimi_linear", {}
    for name, value in items:
        place, _, leaf = name.rpartition("attn." if is_kimi else "attention.")
        layer = int(name.split(".")[2]) if ".layers." in name else 0
        if is_kimi and ".mlp." in name and has_experts(config, layer):
            name = name.replace(".mlp.e_score", ".mlp.gate.e_score").replace(".mlp.", ".block_sparse_moe.")
        name = name.replace("gate.gate_proj", "gate")
        block, _, projection = name.partition("switch_mlp.")
        if projection:
            yield from apart(block, projection, value, is_kimi)
        elif name.endswith("_conv.conv.weight"):
            yield name.replace("_conv.conv", "_conv1d"), np.moveaxis(value, 2, 1)
        elif leaf in ("embed_q.weight", "unembed_out.weight"):
            latent[name.removesuffix(leaf), leaf[0]] = value
        else:
            yield name, value
    for place, leaf in list(latent):
        if leaf == "e":
            both = np.concatenate([np.swapaxes(latent[place, "e"], 1, 2), latent[place, "u"]], 1)
            yield f"{place}kv_b_proj.weight", both.reshape(-1, both.shape[2])
    yield ("model.mtp.0.norm.weight" if is_kimi else "model.layers.4.enorm.weight"), np.ones(8, np.float32)
