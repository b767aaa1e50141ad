"""Rows on models of real size with random weights: decode beside the read bandwidth, and splits over two ranks."""

from concurrent.futures import ThreadPoolExecutor

import limits
from prompts import AnyIds, Prompts
from rows import Figure, ours, running
from spread import Spread

ONE_CORE = ("--threads", "1")
TWO_RANKS = ("--ranks", "2", "--threads", "1")


def beside_reads(setting, row, what, goal, tokens, prompts, model, bytes_of):
    """Bytes a second that decode of `tokens` reads, beside what the same threads can read; `bytes_of` a server and its
    model are those that a token reads."""
    reads, limit = [], []
    with running(ours(setting, model)) as (server,):
        server.complete(prompts.fresh(16), 4)
        size = bytes_of(server, model)
        for _ in range(setting.rounds):
            limit.append(limits.read_bandwidth(setting, setting.threads) / 1e9)
            reads.append(server.complete(prompts.fresh(16), tokens).decode_speed * size / 1e9)
    return [Figure(row, what, "GB/s", {"tandem": Spread(reads), "memory reads": Spread(limit)}, goal)]


def bandwidth(setting):
    """All weights, as a dense model's token reads them."""
    model = limits.checkpoint(setting, "qwen3-1.7b")
    prompts = AnyIds(limits.vocab_of(model), setting.seed + 5)
    weights = lambda server, _: server.metrics()["tandem_rank_memory_bytes:weights"]  # noqa: E731
    what = "4-bit Qwen3-1.7B shape, weights read"
    return beside_reads(setting, "bandwidth", what, "0.75 of the reads", 24, prompts, model, weights)


def moe(setting):
    """The weights that a token takes, some of the experts among them."""
    model = limits.checkpoint(setting, "qwen3-30b-a3b-4-layers")
    prompts = AnyIds(limits.vocab_of(model), setting.seed + 8)
    active = lambda _, folder: limits.active_bytes(folder)  # noqa: E731
    what = "4-bit Qwen3-30B-A3B layers, active weights read"
    return beside_reads(setting, "moe", what, "0.6 of the reads", 128, prompts, model, active)


def warm(servers, prompts):
    """A server's first request also sets things up."""
    for server in servers:
        server.complete(prompts.fresh(16), 8)


def beside_bound(setting, figure, servers, speed, bound):
    """Every round asks both servers, in an order that turns, and then what the machine allows: `speed` is of a server,
    `bound` is given the slower server's and returns the most that two cores can gain."""
    values = {server.name: [] for server in servers}
    bounds = []
    for round_number in range(setting.rounds):
        for server in servers if round_number % 2 == 0 else servers[::-1]:
            values[server.name].append(speed(server))
        bounds.append(bound(values[servers[1].name][-1]))
    figure.values = {name: Spread(some) for name, some in values.items()}
    figure.bound = Spread(bounds)
    return [figure]


def tensor(setting):
    """Decode of the 1.7B shape: two ranks of one core beside one rank on one core."""
    model = limits.checkpoint(setting, "qwen3-1.7b")
    prompts = AnyIds(limits.vocab_of(model), setting.seed + 6)
    figure = Figure("tensor", "tensor split, decode, 1.7B shape", "tok/s", {}, "1.6x one rank")
    figure.bound_by = "memory reads of two cores over those of one"

    def gain_of_reads(_):
        return limits.read_bandwidth(setting, 2) / limits.read_bandwidth(setting, 1)

    makers = [
        ours(setting, model, "2 ranks", (*TWO_RANKS, "--split", "tensor")),
        ours(setting, model, "1 rank", ONE_CORE),
    ]
    with running(*makers) as servers:
        warm(servers, prompts)
        speed = lambda server: server.complete(prompts.fresh(16), 24).decode_speed  # noqa: E731
        return beside_bound(setting, figure, servers, speed, gain_of_reads)


def pipeline(setting):
    """Prefill of 4096 tokens of the default model: two stages of one core beside one rank on one core."""
    prompts = Prompts(setting.mlx, setting.seed + 7)
    figure = Figure("pipeline", "pipeline split, prefill of 4096", "tok/s", {}, "1.8x one rank")
    figure.bound_by = "two ranks of one core that share nothing, both asked at once, over one"
    makers = [
        ours(setting, setting.gguf, "2 ranks", (*TWO_RANKS, "--split", "pipeline")),
        ours(setting, setting.gguf, "1 rank", ONE_CORE),
        ours(setting, setting.gguf, "1 rank beside", ONE_CORE),
    ]
    with running(*makers) as (two, *lone), ThreadPoolExecutor(2) as threads:
        warm([two, *lone], prompts)
        speed = lambda server: 4096 / server.complete(prompts.fresh(4096), 1).first  # noqa: E731
        at_once = lambda alone: sum(threads.map(speed, lone)) / alone  # noqa: E731
        return beside_bound(setting, figure, [two, lone[0]], speed, at_once)
