"""Tiny checkpoints as GGUF files, made of those that make_weights.py draws.

Names, metadata and conversions follow gguf-py's constants and llama.cpp's converters (conversion/*.py), written anew from
what they do. Where a golden model has a number that the format cannot say (a scale of queries, a magnitude of yarn), it is
put into weights, which changes no logit.
"""

import math
import struct

import numpy as np

F32, Q8_0 = 0, 8
ALIGNMENT, BLOCK = 32, 32


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def metadata_value(value):
    """A typed value: flags, texts, u32, f32, and lists of flags or i32."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    kind, form = (7, "?") if isinstance(value[0], bool) else (5, "i")
    return struct.pack("<IIQ", 9, kind, len(value)) + struct.pack(f"<{len(value)}{form}", *value)


def q8_0(value):
    """Blocks of 32: a scale in float16, then signed bytes."""
    blocks = value.reshape(-1, BLOCK)
    scale = (np.abs(blocks).max(-1, keepdims=True) / np.float32(127)).astype(np.float16)
    codes = np.rint(blocks / np.maximum(scale.astype(np.float32), np.float32(1e-30)))
    packed = np.clip(codes, -127, 127).astype(np.int8).view(np.uint8)
    return np.concatenate([scale.view(np.uint8).reshape(len(blocks), 2), packed], 1).tobytes()


def is_quantized(name, value):
    """Routers, convolutions and vectors stay as they are."""
    is_kept = any(part in name for part in ("ffn_gate_inp", "conv", "per_layer_token_embd"))
    return value.ndim > 1 and value.shape[-1] % BLOCK == 0 and not is_kept


def gguf_file(metadata, tensors, quantizes):
    """The bytes of a file, version 3."""
    entries = b"".join(text(key) + metadata_value(value) for key, value in metadata.items())
    infos, data = b"", b""
    for name, value in sorted(tensors.items()):
        value = np.ascontiguousarray(value, np.float32)
        kind = Q8_0 if quantizes and is_quantized(name, value) else F32
        infos += text(name) + struct.pack(f"<I{value.ndim}Q", value.ndim, *reversed(value.shape))
        infos += struct.pack("<IQ", kind, len(data))
        data += q8_0(value) if kind == Q8_0 else value.tobytes()
        data += bytes(-len(data) % ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + entries + infos
    return head + bytes(-len(head) % ALIGNMENT) + data


WHOLE = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "model.embedding_norm": "token_embd_norm",
    "lm_head": "output",
    "model.embed_tokens_per_layer": "per_layer_token_embd",
    "model.per_layer_model_projection": "per_layer_model_proj",
    "model.per_layer_projection_norm": "per_layer_proj_norm",
}
EXPERTS = {f"switch_mlp.{name}_proj": f"ffn_{name}_exps" for name in ("gate", "up", "down")}
SHARED = {f"{name}_proj": f"ffn_{name}_shexp" for name in ("gate", "up", "down")}
MLP = {f"mlp.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")}


def below(module, names):
    return {f"{module}.{ours}": theirs for ours, theirs in names.items()}


LAYER = {
    **{f"self_attn.{name}_proj": f"attn_{name}" for name in "qkv"},
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    **MLP,
    "mlp.gate": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
    **below("mlp", EXPERTS),
    **below("block_sparse_moe", EXPERTS),
    **below("mlp.shared_expert", SHARED),
    **below("mlp.shared_experts", SHARED),
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
    "block_sparse_moe.e_score_correction_bias": "exp_probs_b.bias",
}
POST_NORM = {"post_attention_layernorm": "post_attention_norm"}
GEMMA = {
    **POST_NORM,
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def renamed(name, names):
    """The name in the file of "model.layers.N.module.weight", "….bias" or a tensor without such an end."""
    module, _, kind = name.rpartition(".")
    if name in WHOLE or module in WHOLE:
        return f"{WHOLE[module]}.{kind}"
    _, _, layer, inner = name.split(".", 3)
    if inner in names:
        return f"blk.{layer}.{names[inner]}"
    return f"blk.{layer}.{names[inner.rpartition('.')[0]]}.{kind}"


def sizes(config, **more):
    """The metadata that every architecture has, and more."""
    out = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config.get("rms_norm_eps", 1e-5),
        "rope.freq_base": config.get("rope_theta", 1e4),
    }
    if "intermediate_size" in config:
        out["feed_forward_length"] = config["intermediate_size"]
    if "head_dim" in config:
        out["attention.key_length"] = out["attention.value_length"] = config["head_dim"]
    return out | more


def experts(config):
    keys = {
        "expert_count": ("num_experts", "num_local_experts", "n_routed_experts"),
        "expert_used_count": ("num_experts_per_tok",),
        "expert_feed_forward_length": ("moe_intermediate_size",),
        "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
        "expert_shared_count": ("n_shared_experts",),
        "leading_dense_block_count": ("first_k_dense_replace", "num_dense_layers"),
        "expert_group_count": ("n_group",),
        "expert_group_used_count": ("topk_group",),
        "expert_weights_scale": ("routed_scaling_factor",),
    }
    return {key: config[field] for key, fields in keys.items() for field in fields if field in config}


def interleaved(value, heads):
    """Rows of each head by turns from its first and its second half, as rotation of neighbours wants them."""
    return value.reshape(heads, 2, -1, *value.shape[1:]).swapaxes(1, 2).reshape(value.shape)


def interleaved_heads(config, tensors):
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    return {
        name: interleaved(value, heads[module]) if (module := name.split(".")[-2]) in heads else value
        for name, value in tensors.items()
    }


def llama3_divisors(config):
    scaling, width = config["rope_scaling"], config["head_dim"]
    frequencies = config["rope_theta"] ** (-np.arange(0, width, 2) / width)
    turns = scaling["original_max_position_embeddings"] * frequencies / (2 * math.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return 1 / ((1 - smooth) / scaling["factor"] + smooth)


def llama(config, tensors):
    out = dict(tensors) if config.get("rope_traditional") else interleaved_heads(config, tensors)
    if config.get("rope_scaling"):
        out["rope_freqs.weight"] = llama3_divisors(config)
    return "llama", sizes(config, **experts(config), **{"rope.dimension_count": config["head_dim"]}), LAYER, out


def plain(architecture, names=(), **more):
    """A family whose tensors are as they are elsewhere."""

    def pack(config, tensors):
        return architecture, sizes(config, **experts(config), **more), LAYER | dict(names), tensors

    return pack


def gemma(config, tensors):
    """Norms with their 1, and queries of the scale that the format takes for granted."""
    scale = np.float32((config["head_dim"] / config["query_pre_attn_scalar"]) ** 0.5)
    has_norms, out = config["model_type"] == "gemma3_text", {}
    for name, value in tensors.items():
        value = value + np.float32(1) if name.endswith("norm.weight") else value
        is_query = name.endswith("self_attn.q_norm.weight" if has_norms else "self_attn.q_proj.weight")
        out[name] = value * scale if is_query else value
    if not has_norms:
        caps = {key: config[key] for key in ("attn_logit_softcapping", "final_logit_softcapping")}
        return "gemma2", sizes(config, **caps), LAYER | GEMMA, out
    more = {
        "rope.freq_base_swa": config["rope_local_base_freq"],
        "rope.scaling.type": "linear",
        "rope.scaling.factor": config["rope_scaling"]["factor"],
        "attention.sliding_window": config["sliding_window"],
        "attention.sliding_window_pattern": config["sliding_window_pattern"],
    }
    return "gemma3", sizes(config, **more), LAYER | GEMMA, out


def gemma4(config, tensors):
    windows = [kind == "sliding_attention" for kind in config["layer_types"]]
    shared, full = config["num_kv_shared_layers"], config["global_head_dim"]
    first_shared, width = len(windows) - shared, config["intermediate_size"]
    few = config.get("num_global_key_value_heads", config["num_key_value_heads"])
    turned = full // 8  # pairs: a quarter of the head
    more = {
        "attention.key_length": full,
        "attention.value_length": full,
        "attention.key_length_swa": config["head_dim"],
        "attention.value_length_swa": config["head_dim"],
        "attention.head_count_kv": [config["num_key_value_heads"] if window else few for window in windows],
        "attention.sliding_window": config["sliding_window"],
        "attention.sliding_window_pattern": windows,
        "attention.shared_kv_layers": shared,
        "embedding_length_per_layer_input": config["hidden_size_per_layer_input"],
        "feed_forward_length": [
            width * (2 if config.get("use_double_wide_mlp") and i >= first_shared else 1) for i in range(len(windows))
        ],
        "rope.freq_base": 1e6,
        "rope.freq_base_swa": 1e4,
        "rope.dimension_count": full,
        "rope.dimension_count_swa": config["head_dim"],
    }
    if config.get("enable_moe_block"):
        more |= experts(config) | {"expert_used_count": config["top_k_experts"]}
    cap = config.get("final_logit_softcapping", 30.0)
    more |= {} if cap is None else {"final_logit_softcapping": cap}
    names = {
        **LAYER,
        **GEMMA,
        "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
        "post_feedforward_layernorm_1": "post_ffw_norm_1",
        "post_feedforward_layernorm_2": "post_ffw_norm_2",
        "layer_scalar": "layer_output_scale.weight",
        "per_layer_input_gate": "inp_gate",
        "per_layer_projection": "proj",
        "post_per_layer_input_norm": "post_norm",
        "router.proj": "ffn_gate_inp",
        "router.scale": "ffn_gate_inp.scale",
        "router.per_expert_scale": "ffn_down_exps.scale",
        "experts.gate_up_proj": "ffn_gate_up_exps.weight",
        "experts.down_proj": "ffn_down_exps.weight",
    }
    divisors = np.concatenate([np.ones(turned), np.full(full // 2 - turned, 1e30)])
    return "gemma4", sizes(config, **more), names, tensors | {"rope_freqs.weight": divisors}


def partial(architecture, names=(), **more):
    """A family that turns a part of each head."""

    def pack(config, tensors):
        part = config.get("partial_rotary_factor", config.get("rotary_dim", 0) / config["head_dim"])
        turned = {"rope.dimension_count": int(config["head_dim"] * part)}
        return architecture, sizes(config, **experts(config), **turned, **more), LAYER | dict(names), tensors

    return pack


def stretched(config):
    """Yarn's metadata but for its logarithmic multiplier."""
    scaling = config.get("rope_scaling") or config["rope_parameters"]
    return {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": scaling["factor"],
        "rope.scaling.original_context_length": scaling["original_max_position_embeddings"],
        "rope.scaling.yarn_beta_fast": float(scaling["beta_fast"]),
        "rope.scaling.yarn_beta_slow": float(scaling["beta_slow"]),
    }


def ministral3(config, tensors):
    rope = config["rope_parameters"]
    more = stretched(config) | {
        "rope.freq_base": rope["rope_theta"],
        "rope.scaling.yarn_log_multiplier": rope["mscale_all_dim"],
        "attention.temperature_scale": rope["llama_4_scaling_beta"],
        "attention.sliding_window": config["sliding_window"],
        "attention.sliding_window_pattern": [kind == "sliding_attention" for kind in config["layer_types"]],
    }
    return "mistral3", sizes(config, **more), LAYER, interleaved_heads(config, tensors)


def exaone_moe(config, tensors):
    windows = [kind == "sliding_attention" for kind in config["layer_types"]]
    more = {
        "leading_dense_block_count": config["is_moe_layer"].index(True),
        "expert_shared_count": config["num_shared_experts"],
        "expert_shared_feed_forward_length": config["num_shared_experts"] * config["moe_intermediate_size"],
        "expert_gating_func": 2,
        "expert_weights_norm": True,
        "attention.sliding_window": config["sliding_window"],
        "attention.sliding_window_pattern": windows,
    }
    return "exaone-moe", sizes(config, **experts(config), **more), LAYER, tensors


def smollm3(config, tensors):
    return "smollm3", sizes(config), LAYER, interleaved_heads(config, tensors)


def phi3(config, tensors):
    rope, width = config["rope_scaling"], config["hidden_size"] // config["num_attention_heads"]
    factors = {f"rope_factors_{kind}.weight": np.array(rope[f"{kind}_factor"]) for kind in ("long", "short")}
    context, original = config["max_position_embeddings"], config["original_max_position_embeddings"]
    more = {
        "rope.dimension_count": int(width * config["partial_rotary_factor"]),
        "rope.scaling.type": "longrope",
        "rope.scaling.attn_factor": math.sqrt(1 + math.log(context / original) / math.log(original)),
        "rope.scaling.original_context_length": original,
        "attention.sliding_window": 0,
    }
    names = {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}
    return "phi3", sizes(config, **more), LAYER | names, tensors | factors


def lfm2(config, tensors):
    attends = [kind == "full_attention" for kind in config["layer_types"]]
    is_moe = config["model_type"] == "lfm2_moe"
    feed = {"gate": "ffn_gate_inp", "expert_bias": "exp_probs_b.bias", **EXPERTS}
    feed |= {"w1": "ffn_gate", "w3": "ffn_up", "w2": "ffn_down"}
    feed |= {f"{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")}
    names = {
        **LAYER,
        **below("feed_forward", feed),
        **{f"conv.{name}": f"shortconv.{name}" for name in ("conv", "in_proj", "out_proj")},
        "operator_norm": "attn_norm",
        "ffn_norm": "ffn_norm",
        "self_attn.out_proj": "attn_output",
        "self_attn.q_layernorm": "attn_q_norm",
        "self_attn.k_layernorm": "attn_k_norm",
    }
    out = {name: value[..., 0] if name.endswith("conv.conv.weight") else value for name, value in tensors.items()}
    first = "model.layers.0.feed_forward."
    more = {
        "attention.head_count_kv": [config["num_key_value_heads"] if attend else 0 for attend in attends],
        "feed_forward_length": tensors[first + ("up_proj" if is_moe else "w1") + ".weight"].shape[0],
        "shortconv.l_cache": config["conv_L_cache"],
        "rope.freq_base": config["rope_theta"],
    }
    if is_moe:
        more |= {"expert_gating_func": 2}
    architecture = "lfm2moe" if is_moe else "lfm2"
    return architecture, sizes(config, **experts(config), **more), names, out


LATENT = {
    "self_attn.q_a_proj": "attn_q_a",
    "self_attn.q_a_layernorm": "attn_q_a_norm",
    "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_b_proj": "attn_kv_b",
    "self_attn.embed_q": "attn_k_b",
    "self_attn.unembed_out": "attn_v_b",
    "self_attn.indexer.k_norm": "indexer.k_norm",
    "self_attn.indexer.weights_proj": "indexer.proj",
    "self_attn.indexer.wk": "indexer.attn_k",
    "self_attn.indexer.wq_b": "indexer.attn_q_b",
}
INDEXER = {"head_count": "index_n_heads", "key_length": "index_head_dim", "top_k": "index_topk"}


def with_magnitude(config, tensors):
    """The factor by which yarn lengthens turned values, where mscale differs from mscale_all_dim, in their weights."""
    scaling = config.get("rope_scaling")
    if not scaling:
        return dict(tensors)
    growth = 0.1 * math.log(scaling["factor"])
    magnitude = np.float32((scaling["mscale"] * growth + 1) / (scaling["mscale_all_dim"] * growth + 1))
    rope, width, out = config["qk_rope_head_dim"], config["qk_nope_head_dim"] + config["qk_rope_head_dim"], {}
    for name, value in tensors.items():
        if name.endswith(("self_attn.q_b_proj.weight", "self_attn.q_proj.weight")):
            value = value.reshape(-1, width, value.shape[1]).copy()
            value[:, -rope:] *= magnitude
            value = value.reshape(-1, value.shape[2])
        elif name.endswith("kv_a_proj_with_mqa.weight"):
            value = value.copy()
            value[-rope:] *= magnitude
        elif name.endswith("indexer.wq_b.weight"):
            value = value.reshape(-1, config["index_head_dim"], value.shape[1]).copy()
            value[:, :rope] *= magnitude
            value = value.reshape(-1, value.shape[2])
        elif ".indexer.k_norm." in name:
            value = np.concatenate([value[:rope] * magnitude, value[rope:]])
        out[name] = value
    return out


def split_heads(config, tensors):
    """kv_b in two: what makes keys, turned, and what makes values."""
    plain_width, out = config["qk_nope_head_dim"], {}
    for name, value in tensors.items():
        if not name.endswith("kv_b_proj.weight"):
            out[name] = value
            continue
        heads = value.reshape(config["num_attention_heads"], -1, value.shape[1])
        out[name.replace("kv_b_proj", "embed_q")] = heads[:, :plain_width].swapaxes(1, 2)
        out[name.replace("kv_b_proj", "unembed_out")] = heads[:, plain_width:]
    return out


def latent(architecture="deepseek2", is_old=False, **more):
    """DeepSeek V2 to V3.2 and GLM; older files have kv_b whole and widths of heads."""

    def pack(config, tensors):
        rank, rope = config["kv_lora_rank"], config["qk_rope_head_dim"]
        key, value = config["qk_nope_head_dim"] + rope, config["v_head_dim"]
        is_softmax = config["model_type"] == "deepseek_v2"
        widths = {"attention.key_length": key, "attention.value_length": value}
        if not is_old:
            widths = {f"{name}_mla": width for name, width in widths.items()} | {"attention.head_count_kv": 1}
            widths |= {"attention.key_length": rank + rope, "attention.value_length": rank}
        meta = sizes(config, **experts(config)) | widths | {"rope.dimension_count": rope}
        meta |= {"attention.kv_lora_rank": rank, "expert_gating_func": 1 if is_softmax else 2}
        if config["q_lora_rank"]:
            meta["attention.q_lora_rank"] = config["q_lora_rank"]
        if "index_topk" in config:
            meta |= {f"attention.indexer.{key}": config[field] for key, field in INDEXER.items()}
            meta["rope.freq_base"] = config.get("rope_parameters", config)["rope_theta"]
        if config["norm_topk_prob"]:
            meta["expert_weights_norm"] = True
        if config.get("topk_method") == "greedy":
            meta |= {"expert_group_count": 1, "expert_group_used_count": 1}
        if config.get("rope_scaling"):
            meta |= stretched(config)
            meta["rope.scaling.yarn_log_multiplier"] = 0.1 * config["rope_scaling"]["mscale_all_dim"]
        out = with_magnitude(config, tensors)
        return architecture, meta | more, LAYER | LATENT, out if is_old else split_heads(config, out)

    return pack


DELTA = {
    **POST_NORM,
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.in_proj_ba": "ssm_ba",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
}


def delta_heads(config):
    return tuple(
        config[f"linear_{name}"] for name in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim")
    )


def delta(architecture, arrange):
    """Families with layers of the gated delta rule; `arrange` gives the tensors that one of theirs becomes."""

    def pack(config, tensors):
        keys, values, key_dim, value_dim = delta_heads(config)
        rope = config.get("rope_parameters", config)
        out = {}
        for name, value in tensors.items():
            if name.endswith("A_log"):
                value = -np.exp(value)
            elif name.endswith("conv1d.weight"):
                value = value[..., 0]
            out.update(arrange(config, name, value))
        more = {
            "rope.freq_base": rope["rope_theta"],
            "rope.dimension_count": int(config["head_dim"] * rope["partial_rotary_factor"]),
            "full_attention_interval": config["full_attention_interval"],
            "ssm.conv_kernel": config["linear_conv_kernel_dim"],
            "ssm.state_size": key_dim,
            "ssm.group_count": keys,
            "ssm.time_step_rank": values,
            "ssm.inner_size": values * value_dim,
        }
        if "mrope_section" in rope:
            more["rope.dimension_sections"] = [*rope["mrope_section"], 0]
        if "layer_types" in config:
            more["attention.recurrent_layers"] = [kind == "linear_attention" for kind in config["layer_types"]]
        return architecture, sizes(config, **experts(config), **more), LAYER | DELTA, out

    return pack


def apart(config, name, value):
    """qwen3next: q, k, v and z of each key head in turn become q of all, k of all, v of all; and z."""
    if not name.endswith("in_proj_qkvz.weight"):
        return {name: value}
    keys, values, key_dim, value_dim = delta_heads(config)
    wide = values // keys * value_dim
    heads = value.reshape(keys, 2 * key_dim + 2 * wide, -1)
    parts = np.split(heads, np.cumsum([key_dim, key_dim, wide]), axis=1)
    q, k, v, z = (part.reshape(-1, value.shape[1]) for part in parts)
    return {name.replace("qkvz", "qkv"): np.concatenate([q, k, v]), name.replace("qkvz", "z"): z}


def tiled(config, name, value):
    """qwen35: the first value head of each key head comes before the second of each."""
    keys, values, key_dim, value_dim = delta_heads(config)

    def turn(rows, width):
        return rows.reshape(keys, values // keys, width, -1).swapaxes(0, 1).reshape(rows.shape)

    leaf = name.partition("linear_attn.")[2]
    if leaf in ("in_proj_qkv.weight", "conv1d.weight"):
        rest = 2 * keys * key_dim
        value = np.concatenate([value[:rest], turn(value[rest:], value_dim)])
    elif leaf == "in_proj_z.weight":
        value = turn(value, value_dim)
    elif leaf in ("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias"):
        value = turn(value, 1)
    elif leaf == "out_proj.weight":
        value = turn(value.T, value_dim).T
    return {name: value}


GGUF = {  # model: how it is packed
    "deepseek_v2": latent(),
    "deepseek_v2_lite": latent(),
    "deepseek_v3": latent(),
    # Every second layer from the second on has experts, of three: as if the first two had none.
    "deepseek_v3_kv_b": latent(is_old=True, leading_dense_block_count=2),
    "deepseek_v32": latent("deepseek32"),
    "exaone_moe": exaone_moe,
    "gemma2": gemma,
    "gemma3_text": gemma,
    "gemma4_moe": gemma4,
    "gemma4_shared": gemma4,
    "gemma4_text": gemma4,
    "glm4_moe": partial("glm4moe", POST_NORM, expert_gating_func=2, expert_weights_norm=True),
    "glm4_moe_lite": latent(**{"tokenizer.ggml.pre": "glm4"}),
    "glm_moe_dsa": latent("glm-dsa"),
    "lfm2": lfm2,
    "lfm2_moe": lfm2,
    "llama": llama,
    "llama_tied_bias": llama,
    "minimax": partial("minimax-m2", expert_gating_func=2, expert_feed_forward_length=192),
    "ministral3": ministral3,
    "mistral": llama,
    "mixtral": llama,
    "phi3": phi3,
    "qwen2": plain("qwen2"),
    "qwen2_moe": plain("qwen2moe"),
    "qwen3": plain("qwen3"),
    "qwen3_5": delta("qwen35", tiled),
    "qwen3_5_moe": delta("qwen35moe", tiled),
    "qwen3_moe": plain("qwen3moe"),
    "qwen3_next": delta("qwen3next", apart),
    "seed_oss": plain("seed_oss", POST_NORM),
    "smollm3": smollm3,
}


def gguf_of(model, config, tensors, quantizes=False):
    """A model's file."""
    architecture, metadata, names, packed = GGUF[model](config, tensors)
    full = {"general.architecture": architecture}
    for key, value in metadata.items():
        full[key if key.startswith("tokenizer.") else f"{architecture}.{key}"] = value
    renames = {name: name if name.startswith("rope_f") else renamed(name, names) for name in packed}
    return gguf_file(full, {renames[name]: value for name, value in packed.items()}, quantizes)
