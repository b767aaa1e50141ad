"""mlx-lm's server with a model that says what the prompt tells it to: the last SCRIPT<<…<<END in it, token by token, then
the end-of-text token. It keeps token ids in an ordinary KV cache, so that batches and reuse work as always.

    mlx_lm_server.py --dir FOLDER [any option of mlx_lm.server]

The folder has a model's tokenizer, templates and config.json; weights are not needed."""

import json
import pathlib
import shutil
import sys
import tempfile
import types

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from tokenizers import Tokenizer

TEXT_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
ANSWER_BEGINS = "<|im_start|>assistant\n"
ANSWER_ENDS = "<|im_end|>"


class Player:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.begin = self.encode(ANSWER_BEGINS)
        self.end = tokenizer.token_to_id(ANSWER_ENDS)

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def answer_start(self, ids):
        """Where the answer begins; None while there is none."""
        size = len(self.begin)
        places = (at + size for at in range(len(ids) - size, -1, -1) if ids[at : at + size] == self.begin)
        return next(places, None)

    def next_token(self, ids):
        start = self.answer_start(ids)
        text = "" if start is None else self.tokenizer.decode(ids[:start], skip_special_tokens=False)
        if "SCRIPT<<" not in text:
            return self.end
        wanted = self.encode(text.rsplit("SCRIPT<<", 1)[1].split("<<END", 1)[0])
        said = len(ids) - start
        return wanted[said] if said < len(wanted) else self.end


def model_module(player):
    """What mlx-lm imports as a model's definition."""

    class ModelArgs:
        @classmethod
        def from_dict(cls, config):
            made = cls()
            made.vocab = config["vocab_size"]
            return made

    class Model(nn.Module):
        def __init__(self, args):
            super().__init__()
            self.vocab = args.vocab
            self.layers = [nn.Identity()]
            self.w = mx.zeros((1,))

        def __call__(self, inputs, cache=None):
            kept = inputs.astype(mx.float32)[:, None, :, None]
            keys, _ = cache[0].update_and_fetch(kept, kept)
            mx.eval(keys)
            padding = getattr(cache[0], "left_padding", None)
            padding = [0] * inputs.shape[0] if padding is None else padding.tolist()
            rows = np.array(keys)[:, 0, :, 0].astype(int)
            logits = np.zeros((*inputs.shape, self.vocab), np.float32)
            for row, ids in enumerate(rows):
                logits[row, -1, player.next_token(ids[max(padding[row], 0) :].tolist())] = 20.0
            return mx.array(logits)

    module = types.ModuleType("mlx_lm.models.scripted")
    module.Model, module.ModelArgs = Model, ModelArgs
    return module


def make_checkpoint(source, folder):
    for name in TEXT_FILES:
        if (source / name).exists():
            shutil.copy(source / name, folder)
    config = json.loads((source / "config.json").read_text())
    made = {"model_type": "scripted", "vocab_size": config["vocab_size"], "eos_token_id": config["eos_token_id"]}
    (folder / "config.json").write_text(json.dumps(made))
    mx.save_safetensors(str(folder / "model.safetensors"), {"w": mx.zeros((1,))})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "model.safetensors"}}))


def main():
    words = sys.argv[1:]
    at = words.index("--dir")
    source = pathlib.Path(words[at + 1])
    del words[at : at + 2]
    player = Player(Tokenizer.from_file(str(source / "tokenizer.json")))
    sys.modules["mlx_lm.models.scripted"] = model_module(player)
    with tempfile.TemporaryDirectory() as folder:
        make_checkpoint(source, pathlib.Path(folder))
        from mlx_lm import server

        sys.argv = ["server", "--model", folder, *words]
        server.main()


if __name__ == "__main__":
    main()
