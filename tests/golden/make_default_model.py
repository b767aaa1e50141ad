#!/usr/bin/env python3
"""Greedy answers of the default model by mlx-lm in float32: the reference for tests of the real model.

    make_default_model.py CHECKPOINT OUT.json     (CHECKPOINT made by bench/peers/export_mlx.py)

For each prompt: its text, the ids of the rendered conversation, 64 greedy tokens (never stopping at end-of-text)
and for each the gap between the two largest logits: tokens may differ only where the gap is small.
"""

import json
import sys

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm import load
from mlx_lm.models.cache import make_prompt_cache

PROMPTS = [
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "Explain in one sentence what a hash table is.",
    "List three primary colors.",
    "Translate 'good morning' to Spanish.",
    "What is 12 times 12?",
    "Write a Python function that reverses a string.",
    "Who wrote Romeo and Juliet?",
    "Give me a recipe for pancakes.",
    "Why is the sky blue?",
    "Name the planets of the solar system in order.",
    "Summarize the plot of Cinderella in two sentences.",
    "How do I sort a list in C++?",
    "What does HTTP status 404 mean?",
    "Write a short thank-you note to a colleague.",
    "What is the boiling point of water at sea level?",
    "Tell me a joke about computers.",
    "Convert 100 degrees Fahrenheit to Celsius.",
    "What is the difference between a stack and a queue?",
    "Describe a rainy day in the mountains.",
]
TOKENS = 64


def greedy(model, ids):
    cache = make_prompt_cache(model)
    feed, tokens, gaps = ids, [], []
    for _ in range(TOKENS):
        logits = model(mx.array([feed]), cache=cache)[0, -1].astype(mx.float32)
        best = mx.sort(logits)[-2:]
        tokens.append(mx.argmax(logits).item())
        gaps.append(round((best[1] - best[0]).item(), 4))
        feed = tokens[-1:]
    return tokens, gaps


def main(checkpoint, out):
    model, tokenizer = load(checkpoint)
    model.update(tree_map(lambda p: p.astype(mx.float32) if p.dtype == mx.float16 else p, model.parameters()))
    answers = []
    for prompt in PROMPTS:
        ids = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True)
        tokens, gaps = greedy(model, ids)
        answers.append({"prompt": prompt, "ids": ids, "tokens": tokens, "gaps": gaps, "text": tokenizer.decode(tokens)})
        print(prompt, "->", answers[-1]["text"][:80].replace("\n", " "), flush=True)
    with open(out, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(a) for a in answers) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
