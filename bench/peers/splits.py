"""Rows on models of real size with random weights: decode beside the read bandwidth, and splits over two ranks."""

import limits
from prompts import AnyIds, Prompts
from rows import Figure, alternate, ours, running
from spread import Spread

ONE_CORE = ("--threads", "1")
TWO_RANKS = ("--ranks", "2", "--threads", "1")


def bandwidth(setting):
    """Bytes of weights that decode reads a second, beside what the same threads can read."""
    model = limits.checkpoint(setting, "qwen3-1.7b")
    prompts = AnyIds(limits.vocab_of(model), setting.seed + 5)
    reads, limit = [], []
    with running(ours(setting, model)) as (server,):
        server.complete(prompts.fresh(16), 4)
        weights = server.metrics()["tandem_rank_memory_bytes:weights"]
        for _ in range(setting.rounds):
            limit.append(limits.read_bandwidth(setting, setting.threads) / 1e9)
            reads.append(server.complete(prompts.fresh(16), 24).decode_speed * weights / 1e9)
    values = {"tandem": Spread(reads), "memory reads": Spread(limit)}
    return [Figure("bandwidth", "4-bit Qwen3-1.7B shape, weights read", "GB/s", values, "0.75 of the reads")]


def moe(setting):
    """Bytes of the weights that a token takes, experts among them, beside what the same threads can read."""
    model = limits.checkpoint(setting, "qwen3-30b-a3b-4-layers")
    prompts = AnyIds(limits.vocab_of(model), setting.seed + 8)
    active = limits.active_bytes(model)
    reads, limit = [], []
    with running(ours(setting, model)) as (server,):
        server.complete(prompts.fresh(16), 4)
        for _ in range(setting.rounds):
            limit.append(limits.read_bandwidth(setting, setting.threads) / 1e9)
            reads.append(server.complete(prompts.fresh(16), 128).decode_speed * active / 1e9)
    values = {"tandem": Spread(reads), "memory reads": Spread(limit)}
    what = "4-bit Qwen3-30B-A3B layers, active weights read"
    return [Figure("moe", what, "GB/s", values, "0.6 of the reads")]


def tensor(setting):
    """Decode of the 1.7B shape: two ranks of one core beside one rank on one core."""
    model = limits.checkpoint(setting, "qwen3-1.7b")
    prompts = AnyIds(limits.vocab_of(model), setting.seed + 6)
    rows = {"tensor": ("tensor split, decode, 1.7B shape", "1.6x one rank", lambda s: s.answer(16, 24).decode_speed)}
    makers = [
        ours(setting, model, "2 ranks", (*TWO_RANKS, "--split", "tensor")),
        ours(setting, model, "1 rank", ONE_CORE),
    ]
    with running(*makers) as servers:
        return alternate(setting, rows, servers, prompts)


def pipeline(setting):
    """Prefill of 4096 tokens of the default model: two stages of one core beside one rank on one core."""
    prompts = Prompts(setting.mlx, setting.seed + 7)
    rows = {"pipeline": ("pipeline split, prefill of 4096", "1.8x one rank", lambda s: 4096 / s.answer(4096, 1).first)}
    makers = [
        ours(setting, setting.gguf, "2 ranks", (*TWO_RANKS, "--split", "pipeline")),
        ours(setting, setting.gguf, "1 rank", ONE_CORE),
    ]
    with running(*makers) as servers:
        return alternate(setting, rows, servers, prompts)
