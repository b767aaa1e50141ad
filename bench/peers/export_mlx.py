#!/usr/bin/env python3
"""Writes a llama-family GGUF (Q4_0, Q4_1, Q8_0, F16, F32) as an mlx-lm checkpoint with the very same weights.

    export_mlx.py model.gguf OUT

mx.load reads ggml's 32-element blocks straight into MLX's affine format, so no value changes. Rotary halves stay
interleaved as in the GGUF (rope_traditional). The tokenizer is rebuilt from the GGUF's metadata.
"""

import json
import pathlib
import sys

import mlx.core as mx

WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def mlx_name(name):
    module, kind = name.rsplit(".", 1)
    if module.startswith("blk."):
        _, layer, module = module.split(".", 2)
        return f"model.layers.{layer}.{LAYER[module]}.{kind}"
    return f"{WHOLE[module]}.{kind}"


def scalar(metadata, key, default=None):
    value = metadata.get(key, default)
    return value.item() if isinstance(value, mx.array) else value


def quantization(weights):
    """The model's affine settings, with an entry for each module that differs from 4 bits."""
    settings = {"group_size": 32, "bits": 4}
    for name, scales in weights.items():
        if name.endswith(".scales"):
            module = name[: -len(".scales")]
            bits = weights[f"{module}.weight"].shape[-1] * 32 // (scales.shape[-1] * 32)
            if bits != 4:
                settings[module] = {"group_size": 32, "bits": bits}
    return settings


def config_of(metadata, weights):
    prefix = metadata["general.architecture"] + "."
    get = lambda key, default=None: scalar(metadata, prefix + key, default)  # noqa: E731
    heads = int(get("attention.head_count"))
    return {
        "model_type": "llama",
        "num_hidden_layers": int(get("block_count")),
        "hidden_size": int(get("embedding_length")),
        "intermediate_size": int(get("feed_forward_length")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(get("attention.head_count_kv", heads)),
        "rms_norm_eps": get("attention.layer_norm_rms_epsilon"),
        "rope_theta": get("rope.freq_base", 10000.0),
        "rope_traditional": True,
        "max_position_embeddings": int(get("context_length")),
        "vocab_size": weights["model.embed_tokens.scales"].shape[0],
        "tie_word_embeddings": "lm_head.weight" not in weights,
        "eos_token_id": int(scalar(metadata, "tokenizer.ggml.eos_token_id")),
        "quantization": quantization(weights),
    }


def tokenizer_of(metadata):
    """tokenizer.json of a byte-level BPE: single digits apart, then GPT-2's pattern (ggml's pre "smollm")."""
    tokens = metadata["tokenizer.ggml.tokens"]
    types = metadata["tokenizer.ggml.token_type"].tolist()
    special = [
        {
            "id": i,
            "content": t,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, t in enumerate(tokens)
        if types[i] == 3
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level]},
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {t: i for i, t in enumerate(tokens)},
            "merges": [m.split(" ") for m in metadata["tokenizer.ggml.merges"]],
        },
    }


def main(source, out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    arrays, metadata = mx.load(source, return_metadata=True)
    weights = {mlx_name(name): value for name, value in arrays.items()}
    mx.save_safetensors(str(out / "model.safetensors"), weights, metadata={"format": "mlx"})
    (out / "config.json").write_text(json.dumps(config_of(metadata, weights), indent=2))
    (out / "tokenizer.json").write_text(json.dumps(tokenizer_of(metadata)))
    tokens = metadata["tokenizer.ggml.tokens"]
    (out / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "chat_template": metadata["tokenizer.chat_template"],
                "bos_token": tokens[int(scalar(metadata, "tokenizer.ggml.bos_token_id"))],
                "eos_token": tokens[int(scalar(metadata, "tokenizer.ggml.eos_token_id"))],
                "clean_up_tokenization_spaces": False,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
