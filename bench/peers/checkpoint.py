#!/usr/bin/env python3
"""Writes checkpoints of random numbers in the shapes of real models: for speed and memory, not for sense.

    checkpoint.py SHAPE OUT     # OUT/{config.json, model.safetensors, tokenizer.json, tokenizer_config.json}

4-bit affine in groups of 64 as MLX writes it, scales in bfloat16; one slice in memory at a time. Needs nothing but
Python.
"""

import json
import math
import pathlib
import random
import struct
import sys

SEED = 1
BITS, GROUP = 4, 64
SLICE_BYTES = 8 << 20

COMMON = {"rms_norm_eps": 1e-5, "hidden_act": "silu", "eos_token_id": 2, "bos_token_id": 1}
SHAPES = {
    "qwen3-1.7b": {
        "model_type": "qwen3",
        "hidden_size": 2048,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 6144,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "rope_theta": 1e6,
        "tie_word_embeddings": True,
    },
    # All of a layer's shapes; few layers, and few tokens, so that the layers are what a step reads.
    "qwen3-30b-a3b-4-layers": {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "num_hidden_layers": 4,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 6144,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "vocab_size": 8192,
        "max_position_embeddings": 40960,
        "rope_theta": 1e6,
        "tie_word_embeddings": False,
    },
    "smollm2-135m-64k": {
        "model_type": "llama",
        "hidden_size": 576,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "intermediate_size": 1536,
        "vocab_size": 49152,
        "max_position_embeddings": 65536,
        "rope_theta": 1e5,
        "tie_word_embeddings": True,
    },
    "tiny": {
        "model_type": "llama",
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "intermediate_size": 512,
        "vocab_size": 1024,
        "max_position_embeddings": 4096,
        "rope_theta": 1e4,
        "tie_word_embeddings": True,
    },
    "tiny-512k": {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "intermediate_size": 128,
        "vocab_size": 512,
        "max_position_embeddings": 524288,
        "rope_theta": 1e6,
        "tie_word_embeddings": True,
    },
}


def matrices(config):
    """Name and shape of each quantized matrix; those of experts are stacked."""
    hidden, mlp, dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    experts, width = config.get("num_experts", 0), config.get("moe_intermediate_size", 0)
    yield "model.embed_tokens", config["vocab_size"], hidden
    if not config["tie_word_embeddings"]:
        yield "lm_head", config["vocab_size"], hidden
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        yield f"{at}.self_attn.q_proj", q, hidden
        yield f"{at}.self_attn.k_proj", kv, hidden
        yield f"{at}.self_attn.v_proj", kv, hidden
        yield f"{at}.self_attn.o_proj", hidden, q
        if experts:
            yield f"{at}.mlp.gate", experts, hidden
            yield f"{at}.mlp.switch_mlp.gate_proj", experts, width, hidden
            yield f"{at}.mlp.switch_mlp.up_proj", experts, width, hidden
            yield f"{at}.mlp.switch_mlp.down_proj", experts, hidden, width
            continue
        yield f"{at}.mlp.gate_proj", mlp, hidden
        yield f"{at}.mlp.up_proj", mlp, hidden
        yield f"{at}.mlp.down_proj", hidden, mlp


def bits_of(name):
    """As mlx-lm quantizes: routers have 8 bits."""
    return 8 if name.endswith(".mlp.gate") else BITS


def quantization(config):
    own = {name: {"group_size": GROUP, "bits": bits_of(name)} for name, *_ in matrices(config) if bits_of(name) != BITS}
    return {"group_size": GROUP, "bits": BITS, **own}


def active_bytes(config):
    """Bytes of matrices that one token reads: all but the table of embeddings, a row of which is read unless it is the
    head too, and the experts that it does not take."""
    total = 0
    for name, *shape in matrices(config):
        if name == "model.embed_tokens" and not config["tie_word_embeddings"]:
            continue
        if len(shape) == 3:
            shape[0] = config["num_experts_per_tok"]
        total += math.prod(shape) * (bits_of(name) + 32 / GROUP) / 8
    return total


def norms(config):
    """Name and width of each RMS norm."""
    yield "model.norm", config["hidden_size"]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm", config["hidden_size"]
        yield f"{at}.post_attention_layernorm", config["hidden_size"]
        if config["model_type"] in ("qwen3", "qwen3_moe"):
            yield f"{at}.self_attn.q_norm", config["head_dim"]
            yield f"{at}.self_attn.k_norm", config["head_dim"]


def packed(dtype, value):
    """The bytes of one number."""
    if dtype == "BF16":
        return struct.pack("<f", value)[2:]
    return struct.pack({"F32": "<f", "U8": "B"}[dtype], value)


def tensors(config):
    """(name, dtype, shape, kind, parameter) in the order of the file."""
    for name, *rows, columns in matrices(config):
        bits = bits_of(name)
        step = 4 / math.sqrt(columns) / 2**bits  # weights of about unit gain
        yield f"{name}.weight", "U32", [*rows, columns * bits // 32], "random", 0
        yield f"{name}.scales", "BF16", [*rows, columns // GROUP], "constant", step
        yield f"{name}.biases", "BF16", [*rows, columns // GROUP], "constant", -step * (2**bits - 1) / 2
    for name, width in norms(config):
        yield f"{name}.weight", "BF16", [width], "constant", 1


def size_of(dtype, shape):
    return math.prod(shape) * {"U32": 4, "F32": 4, "BF16": 2, "U8": 1}[dtype]


def spread(count, size, source):
    """`count` bytes of numbers in bfloat16: between a power of two near `size` and twice it, of either sign."""
    exponent = round(math.log2(size)) + 127
    out = bytearray(source.randbytes(count))
    out[0::2] = out[0::2].translate(bytes((byte & 0x7F) | (exponent & 1) << 7 for byte in range(256)))
    out[1::2] = out[1::2].translate(bytes((byte & 0x80) | exponent >> 1 for byte in range(256)))
    return out


def slices(dtype, shape, kind, parameter, source):
    left = size_of(dtype, shape)
    while left > 0:
        count = min(left, SLICE_BYTES)
        left -= count
        if kind == "random":
            yield source.randbytes(count)
        elif kind == "spread":
            yield spread(count, parameter, source)
        else:
            one = packed(dtype, parameter)
            yield one * (count // len(one))


def write_weights(tensors, path):
    header, offset = {"__metadata__": {"format": "mlx"}}, 0
    for name, dtype, shape, _, _ in tensors:
        end = offset + size_of(dtype, shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    source = random.Random(SEED)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, dtype, shape, kind, parameter in tensors:
            for piece in slices(dtype, shape, kind, parameter, source):
                out.write(piece)


def tokenizer(config):
    """One made-up word for each id; prompts are given as ids."""
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2}
    vocabulary |= {f"w{i}": i for i in range(3, config.get("text_config", config)["vocab_size"])}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }


def write(shape, out):
    """Writes the checkpoint unless it is there; returns its folder."""
    config = {**COMMON, **SHAPES[shape]}
    config["quantization"] = quantization(config)
    return write_files(config, list(tensors(config)), pathlib.Path(out))


def write_files(config, tensors, out):
    """The same for tensors as (name, dtype, shape, kind, parameter)."""
    done = out / "config.json"  # written last
    if done.exists() and json.loads(done.read_text()) == config:
        return out
    print(f"bench: writing random weights into {out}", file=sys.stderr)
    out.mkdir(parents=True, exist_ok=True)
    done.unlink(missing_ok=True)
    write_weights(tensors, out / "model.safetensors")
    (out / "tokenizer.json").write_text(json.dumps(tokenizer(config)))
    template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    (out / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, "eos_token": "</s>"}))
    done.write_text(json.dumps(config, indent=2))
    return out


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in SHAPES:
        sys.exit(f"checkpoint.py SHAPE OUT; SHAPE is one of {', '.join(SHAPES)}")
    write(sys.argv[1], sys.argv[2])
