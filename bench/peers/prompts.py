"""Prompts of random words that no server has seen, so that no prefix cache answers them."""

import json
import pathlib
import random
import re


class Prompts:
    """Ids whose pieces are whole lower-case words with a leading space: their text is tokenized to the same ids."""

    def __init__(self, checkpoint, seed):
        vocabulary = json.loads((pathlib.Path(checkpoint) / "tokenizer.json").read_text())["model"]["vocab"]
        self.words = {
            i: piece.replace("Ġ", " ") for piece, i in vocabulary.items() if re.fullmatch(r"Ġ[a-z]{3,}", piece)
        }
        self.ids = sorted(self.words)
        self.random = random.Random(seed)

    def fresh(self, count):
        return self.random.choices(self.ids, k=count)


class AnyIds:
    """For random checkpoints, whose tokens mean nothing."""

    def __init__(self, vocab, seed):
        self.vocab = vocab
        self.random = random.Random(seed)

    def fresh(self, count):
        return [self.random.randrange(3, self.vocab) for _ in range(count)]
