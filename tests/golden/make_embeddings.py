#!/usr/bin/env python3
"""Write golden embeddings of a few of make_weights.py's checkpoints: what mlx-lm's hidden states after the final norm
come to, pooled in numpy.

  python make_embeddings.py --weights DIR --out EMBEDDINGS    # DIR/<name>/ → EMBEDDINGS/<name>.safetensors

tokens, mean, last    a prompt, the mean of its positions' hidden states, and the last one; not normalised
"""

import argparse
import pathlib

import mlx.core as mx
import numpy as np
from make_logits import PROMPT
from make_weights import write_safetensors
from mlx_lm.utils import load_model

# Attention of one kind, norms whose weights lie around 0 with windows, and layers with recurrent state.
CHECKPOINTS = ("llama-g32", "gemma3_text-f32", "qwen3_5-g32")


def hidden_states(model, tokens):
    """[tokens, hidden] after the final norm, without a cache."""
    body = getattr(model, "language_model", model).model
    return np.array(body(mx.array(tokens)[None])[0].astype(mx.float32))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in CHECKPOINTS:
        model, _ = load_model(arguments.weights / name)
        states = hidden_states(model, PROMPT)
        golden = {
            "tokens": np.array(PROMPT, np.int32),
            "mean": states.astype(np.float64).mean(axis=0).astype(np.float32),
            "last": states[-1],
        }
        write_safetensors(arguments.out / f"{name}.safetensors", golden.items())


if __name__ == "__main__":
    main()
