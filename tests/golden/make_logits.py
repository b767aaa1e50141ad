#!/usr/bin/env python3
"""Write the golden logits of every checkpoint that make_weights.py wrote, as mlx-lm computes them.

  python make_logits.py --weights DIR --out LOGITS    # DIR/<name>/ → LOGITS/<name>.safetensors

tokens, full.logits    a prompt in one pass; chunk.sizes: how golden_test cuts it
greedy.*               the answer that follows, a token at a time
batch.N.*              short prompts, each run alone, and their answers
"""

import argparse
import pathlib

import mlx.core as mx
import numpy as np
from make_weights import write_safetensors
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.models.nemotron_h import MambaRMSNormGated as GroupNorm
from mlx_lm.utils import load_model

STEPS = 8
CHUNK_SIZES = [5, 16, 9, 7, 2]
PROMPT = [
    *(292, 117, 115, 265, 10, 274, 278, 44, 258, 32, 102, 111, 120, 263, 32, 49, 50, 32, 281, 102, 290, 115, 32, 282),
    *(32, 284, 257, 111, 270, 260, 59, 32, 228, 189, 160, 229, 165, 189, 33, 293, 10, 292, 97, 115, 115, 105, 115, 116),
    *(264, 116, 10),
]
BATCH = [
    [274, 278],
    [
        *(116, 256, 32, 282, 32, 286, 32, 259, 262, 32, 111, 116, 256, 114, 257, 267, 101, 44, 263, 32, 267, 263, 32),
        *(267, 257, 111, 258, 32, 283, 100, 46),
    ],
    [49, 50, 32, 281, 102, 290],
]


def run(model, tokens, cache):
    """The logits of each of the tokens."""
    logits = model(mx.array(tokens)[None], cache=cache)[0].astype(mx.float32)
    mx.eval(logits, [layer.state for layer in cache])
    return np.array(logits)


def answer(model, prompt):
    """(logits of the prompt, tokens of the answer, logits after each of them)."""
    cache = make_prompt_cache(model)
    first = run(model, prompt, cache)
    tokens, logits = [int(first[-1].argmax())], []
    for _ in range(STEPS):
        logits.append(run(model, tokens[-1:], cache)[0])
        tokens.append(int(logits[-1].argmax()))
    return first, tokens, logits


def golden(model):
    """Name → array, of everything that golden_test reads."""
    full, tokens, logits = answer(model, PROMPT)
    out = {
        "tokens": PROMPT,
        "full.logits": full,
        "chunk.sizes": CHUNK_SIZES,
        "greedy.tokens": tokens,
        "greedy.logits": logits,
    }
    for i, prompt in enumerate(BATCH):
        first, tokens, logits = answer(model, prompt)
        out[f"batch.{i}.prompt"] = prompt
        out[f"batch.{i}.tokens"] = tokens[:STEPS]
        out[f"batch.{i}.logits"] = [first[-1], *logits[: STEPS - 1]]
    return {name: np.array(value, np.float32 if "logits" in name else np.int32) for name, value in out.items()}


def correct(model):
    """Mamba 2 norms the columns of each group (state-spaces/mamba, modules/mamba2.py), mlx-lm's mamba2 all together."""
    if getattr(model, "model_type", None) != "mamba2":
        return
    for layer in model.layers:
        mixer = layer.mixer
        norm = GroupNorm(mixer.intermediate_size, mixer.norm.eps, mixer.intermediate_size // mixer.n_groups)
        norm.weight = mixer.norm.weight
        mixer.norm = norm


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for folder in sorted(f for f in arguments.weights.iterdir() if f.is_dir() and not f.name.endswith("-upstream")):
        model, _ = load_model(folder)
        correct(model)
        write_safetensors(arguments.out / f"{folder.name}.safetensors", golden(model).items())


if __name__ == "__main__":
    main()
