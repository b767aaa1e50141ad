"""Tiny checkpoints as publishers lay them out, made of those that make_weights.py draws.

Each function takes a config and {tensor name: float32 array} in mlx-lm's names and gives both in its layout. The
packers follow the formats' definitions; mlx-lm reads what they write.
"""

import numpy as np

GROUP, BLOCK = 32, 128
PROJECTIONS = ("_proj.weight", ".w1.weight", ".w2.weight", ".w3.weight")
MINIMAX = dict(gate_proj="w1", down_proj="w2", up_proj="w3")
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # of the outputs in a word, lowest bits first


def awq_words(codes):
    """[rows, columns] of 4-bit codes as [rows, columns / 8] words."""
    rows, columns = codes.shape
    ordered = codes.reshape(rows, columns // 8, 8)[:, :, AWQ_ORDER].astype(np.uint32)
    return (ordered << (np.arange(8, dtype=np.uint32) * np.uint32(4))).sum(-1, dtype=np.uint32).view(np.int32)


def awq(config, tensors):
    """AutoAWQ, version gemm: all projections in 4 bits with zeros, in groups along the inputs."""
    out = {}
    for name, value in tensors.items():
        module = name.removesuffix(".weight")
        if not module.endswith("_proj"):
            out[name] = value
            continue
        groups = value.reshape(value.shape[0], -1, GROUP)
        low, high = np.minimum(groups.min(-1), 0), np.maximum(groups.max(-1), 0)
        scale = ((high - low) / np.float32(15)).astype(np.float32)
        zero = np.clip(np.rint(-low / scale), 0, 15)
        codes = np.clip(np.rint(groups / scale[..., None]) + zero[..., None], 0, 15).reshape(value.shape)
        out[f"{module}.qweight"] = awq_words(codes.T)
        out[f"{module}.qzeros"] = awq_words(zero.T)
        out[f"{module}.scales"] = np.ascontiguousarray(scale.T)
    method = dict(quant_method="awq", version="gemm", bits=4, group_size=GROUP, zero_point=True)
    return dict(config, quantization_config=method), out


def stacked(config, tensors):
    """qwen3_vl_moe: experts in one tensor [experts, inputs, outputs] below a model that also sees."""
    out = {"model.visual.patches.weight": np.zeros((8, 8), np.float32)}
    for name, value in tensors.items():
        inside = name.replace("model.", "model.language_model.", 1)
        block, _, leaf = inside.partition("switch_mlp.")
        if not leaf:
            out[inside] = value
        elif leaf == "gate_proj.weight":
            both = np.concatenate([value, tensors[name.replace("gate_proj", "up_proj")]], -2)
            out[f"{block}experts.gate_up_proj"] = both.swapaxes(-1, -2)
        elif leaf == "down_proj.weight":
            out[f"{block}experts.down_proj"] = value.swapaxes(-1, -2)
    text = dict(config, model_type="qwen3_vl_moe_text")
    return dict(model_type="qwen3_vl_moe", text_config=text, tie_word_embeddings=False), out


def e4m3(value):
    """The codes that lie nearest, of values up to 448."""
    codes = np.arange(127)
    sizes = np.where(codes < 8, codes * 2.0**-9, (8 + codes % 8) * 2.0 ** (codes // 8 - 10))
    nearest = np.searchsorted((sizes[1:] + sizes[:-1]) / 2, np.abs(value))
    return (nearest | np.where(value < 0, 128, 0)).astype(np.uint8)


def fp8_matrix(value):
    """(codes as int8, scales of blocks of 128 by 128)."""
    scales = np.zeros([-(-side // BLOCK) for side in value.shape], np.float32)
    codes = np.zeros(value.shape, np.uint8)
    for at in np.ndindex(*scales.shape):
        block = tuple(slice(i * BLOCK, (i + 1) * BLOCK) for i in at)
        scales[at] = np.abs(value[block]).max() / np.float32(448)
        codes[block] = e4m3(np.clip(value[block] / scales[at], -448, 448))
    return codes.view(np.int8), scales  # which is how make_weights.py tells E4M3 from bytes


def one_by_one(tensors, names):
    """Experts as publishers keep them, under such names."""
    out = {}
    for name, value in tensors.items():
        block, _, leaf = name.partition("switch_mlp.")
        if leaf:
            module = leaf.removesuffix(".weight")
            module = names.get(module, module)
            out.update({f"{block}experts.{e}.{module}.weight": one for e, one in enumerate(value)})
        else:
            out[name] = value
    return out


def fp8(config, tensors, names, kept=()):
    """Projections in E4M3 with a scale for each block, experts one by one under other names; some stay as they are."""
    out = {}
    for name, value in one_by_one(tensors, names).items():
        if name.endswith(PROJECTIONS) and not name.endswith(kept):
            out[name], out[f"{name}_scale_inv"] = fp8_matrix(value)
        else:
            out[name] = value
    method = dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[BLOCK, BLOCK])
    return dict(config, quantization_config=method), out


def mxfp8(config, tensors):
    """minimax_m3: all projections in E4M3 with an exponent for 32 columns, experts one by one as w1, w2 and w3."""
    out = {}
    for name, value in one_by_one(tensors, MINIMAX).items():
        if not name.endswith(PROJECTIONS):
            out[name] = value
            continue
        groups = value.reshape(value.shape[0], -1, GROUP)
        exponent = np.ceil(np.log2(np.maximum(np.abs(groups).max(-1), 1e-30) / 448)) + 127
        scaled = groups / 2.0 ** (exponent[..., None] - 127)
        out[name] = e4m3(scaled).reshape(value.shape).view(np.int8)
        out[f"{name}_scale_inv"] = exponent.astype(np.uint8)
    text = dict(config["text_config"], quantization_config=dict(quant_method="mxfp8"))
    return dict(config, text_config=text), out


def minimax_fp8(config, tensors):
    return fp8(config, tensors, MINIMAX)


def mimo_v2_fp8(config, tensors):
    return fp8(config, tensors, {}, ("o_proj.weight",))


LAYOUTS = {
    "llama-awq": ("llama", awq),
    "mimo_v2_flash-fp8": ("mimo_v2_flash", mimo_v2_fp8),
    "minimax-fp8": ("minimax", minimax_fp8),
    "minimax_m3-mxfp8": ("minimax_m3", mxfp8),
    "qwen3_moe-stacked": ("qwen3_moe", stacked),
}
