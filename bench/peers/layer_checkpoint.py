"""Checkpoints of layer_shapes.py with random numbers. Which tensors such a model has, and of which types once it is
quantized, mlx-lm says: its models are built without being computed."""

import json
import math
import pathlib
from dataclasses import dataclass

import checkpoint
import layer_shapes
import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm import utils


@dataclass
class Tensor:
    """As a checkpoint stores it."""

    name: str
    dtype: str  # of safetensors
    shape: tuple

    @property
    def module(self):
        return self.name.rpartition(".")[0]

    @property
    def bytes(self):
        return checkpoint.size_of(self.dtype, self.shape)


def text_of(config):
    return config.get("text_config", config)


def modes(quantization):
    """(the whole model's, {module: its own})."""
    own = {key: value for key, value in quantization.items() if isinstance(value, dict)}
    return {key: value for key, value in quantization.items() if key not in own}, own


def built(config):
    """([Tensor], quantization) of mlx-lm's model of this config, quantized as mlx-lm would; in mxfp4 experts only."""
    model_class, args_class = utils._get_classes(config)
    model = model_class(args_class.from_dict(config))
    whole, own = modes(config["quantization"])
    predicate = getattr(model, "quant_predicate", None) or (lambda path, module: True)

    def quantizes(path, module):
        if not hasattr(module, "to_quantized") or ("mode" in whole and ".experts." not in path):
            return False
        found = True if "mode" in whole else predicate(path, module)
        if isinstance(found, dict):
            own[path] = found
        return found

    nn.quantize(model, **whole, class_predicate=quantizes)
    is_cast = getattr(model, "cast_predicate", lambda name: True)
    types = {mx.uint32: "U32", mx.uint8: "U8"}
    tensors = [
        Tensor(name, types.get(value.dtype, "BF16" if is_cast(name) else "F32"), value.shape)
        for name, value in tree_flatten(model.parameters())
    ]
    return tensors, {**whole, **own}


def bits_of(module, quantization):
    whole, own = modes(quantization)
    return own.get(module, whole)["bits"]


def filling(tensor, columns, bits):
    """(kind, parameter) of checkpoint.slices: weights of about unit gain, norms of 1, no biases."""
    leaf = tensor.name.rpartition(".")[2]
    step = 4 / math.sqrt(columns) / 2**bits if bits else 0
    if leaf == "weight" and len(tensor.shape) > 1:
        return ("random", 0) if tensor.dtype == "U32" else ("spread", 1 / math.sqrt(tensor.shape[1]))
    if leaf == "scales":
        return "constant", 127 - round(math.log2(columns) / 2) if tensor.dtype == "U8" else step
    if leaf == "biases":
        return "constant", -step * (2**bits - 1) / 2
    return "constant", 1 if "norm" in tensor.name else -1 if leaf == "A_log" else 0


def filled(tensors, quantization):
    """(name, dtype, shape, kind, parameter) of each."""
    columns, bits = {}, {}
    for tensor in tensors:
        if tensor.dtype == "U32":
            bits[tensor.module] = bits_of(tensor.module, quantization)
            columns[tensor.module] = tensor.shape[-1] * 32 // bits[tensor.module]
    for tensor in tensors:
        filled_with = filling(tensor, columns.get(tensor.module), bits.get(tensor.module))
        yield tensor.name, tensor.dtype, tensor.shape, *filled_with


def write(shape, out):
    """Writes the checkpoint unless it is there; returns its folder."""
    config = {**layer_shapes.SHAPES[shape], "eos_token_id": 2, "bos_token_id": 1}
    tensors, quantization = built(config)
    config["quantization"] = quantization
    return checkpoint.write_files(config, list(filled(tensors, quantization)), pathlib.Path(out))


@dataclass
class Work:
    """What a token does with the weights, without the table of embeddings: of experts, those that it takes."""

    read_bytes: float  # in decoding, the head's among them
    products: float  # multiplications and additions of a prompt's token, without the head


def work_of(model):
    config = json.loads((pathlib.Path(model) / "config.json").read_text())
    tensors, quantization = built(config)
    text = text_of(config)
    experts = next((text[key] for key in ("num_experts", "num_local_experts", "n_routed_experts") if key in text), 1)
    work = Work(0, 0)
    for tensor in tensors:
        if "embed_tokens" in tensor.name:
            continue
        is_expert = ".switch_mlp." in tensor.name or ".experts." in tensor.name
        share = text["num_experts_per_tok"] / experts if is_expert else 1
        work.read_bytes += share * tensor.bytes
        is_matrix = tensor.name.endswith(".weight") and len(tensor.shape) > 1 and "conv1d" not in tensor.name
        if is_matrix and "lm_head" not in tensor.name:
            packed = 32 / bits_of(tensor.module, quantization) if tensor.dtype == "U32" else 1
            work.products += 2 * share * packed * math.prod(tensor.shape)
    return work
