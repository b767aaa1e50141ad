"""The rows of the table: what each one measures, on which servers, and how far it should reach."""

import contextlib
import pathlib
import sys
from dataclasses import dataclass

import limits
from prompts import AnyIds, Prompts
from servers import Bound, LlamaCpp, MlxLm, Tandem, llama_server
from spread import Spread


@dataclass
class Figure:
    """One line of the table: a figure of each subject, and what ours is compared with."""

    row: str
    what: str
    unit: str
    values: dict  # subject: Spread; ours is the first
    goal: str = ""
    higher_is_better: bool = True
    bound: Spread | None = None  # of the ratio to the last subject, measured in the same rounds
    bound_by: str = ""

    def ratios(self):
        ours, *others = self.values
        return {other: self.values[ours].ratio_to(self.values[other]) for other in others}

    def share_of_bound(self):
        return list(self.ratios().values())[-1].ratio_to(self.bound)


@dataclass
class Setting:
    """What a run was asked for and where things lie."""

    gguf: str
    mlx: str
    llama_server: str
    python: str
    cache: pathlib.Path
    logs: pathlib.Path
    threads: int
    rounds: int
    seed: int
    nice: int
    rows: set
    peers: set
    session_tokens: int

    def log(self, name):
        return self.logs / f"{name}.log"


class Sampler:
    """The requests of one round to one server; a request that two rows share is sent once."""

    def __init__(self, server, prompts):
        self.server = server
        self.prompts = prompts
        self.sent = {}

    def answer(self, prompt, tokens):
        if (prompt, tokens) not in self.sent:
            self.sent[prompt, tokens] = self.server.complete(self.prompts.fresh(prompt), tokens)
        return self.sent[prompt, tokens]

    def streams(self, count, tokens=128):
        seconds = self.server.together([self.prompts.fresh(32) for _ in range(count)], tokens)
        return count * tokens / seconds


LONGEST = 8184  # of the default model's 8192 positions

PEER_ROWS = {
    "decode": ("decode, 1 stream", "1.5x llama.cpp", lambda s: s.answer(16, 128).decode_speed),
    "decode-2048": ("decode at 2048 tokens", "2x llama.cpp", lambda s: s.answer(2048, 64).decode_speed),
    "prefill-512": ("prefill of 512", "1.3x llama.cpp (4x with AMX)", lambda s: 512 / s.answer(512, 1).first),
    "prefill-2048": ("prefill of 2048", "1.3x llama.cpp (5x with AMX)", lambda s: 2048 / s.answer(2048, 64).first),
    "prefill-8192": (
        f"prefill of {LONGEST}",
        "1.3x llama.cpp (5x with AMX)",
        lambda s: LONGEST / s.answer(LONGEST, 1).first,
    ),
    "streams-1": ("1 stream in all", "", lambda s: s.streams(1)),
    "streams-4": ("4 streams in all", "", lambda s: s.streams(4)),
    "streams-8": ("8 streams in all", "2x llama.cpp", lambda s: s.streams(8)),
}
MLX_ROWS = {
    "mlx-decode": ("decode, 1 stream", "12x mlx-lm", lambda s: s.answer(16, 24).decode_speed),
    "mlx-prefill": (
        "prefill of 64 (its speed does not grow with length)",
        "60x mlx-lm",
        lambda s: 64 / s.answer(64, 1).first,
    ),
}


def alternate(setting, rows, servers, prompts):
    """Every round visits every server, in an order that turns; returns figures by row and server."""
    chosen = [row for row in rows if row in setting.rows]
    values = {row: {server.name: [] for server in servers} for row in chosen}
    for server in servers:
        server.complete(prompts.fresh(16), 8)  # its first request also sets things up
    for round_number in range(setting.rounds):
        turn = round_number % len(servers)
        for server in servers[turn:] + servers[:turn]:
            sampler = Sampler(server, prompts)
            for row in chosen:
                values[row][server.name].append(rows[row][2](sampler))
    return [
        Figure(row, rows[row][0], "tok/s", {name: Spread(v) for name, v in values[row].items()}, rows[row][1])
        for row in chosen
    ]


@contextlib.contextmanager
def running(*makers):
    """Servers that end with the block, also after an error."""
    started = []
    try:
        for make in makers:
            started.append(make())
        yield started
    finally:
        for server in started:
            server.stop()


def ours(setting, model, name="tandem", extra=(), kind=Tandem):
    def make():
        server = kind(model, setting.log(name), extra, setting.nice)
        server.name = name
        return server

    return make


def llama_cpp(setting):
    binary = setting.llama_server or llama_server(setting.gguf)

    def make():
        return LlamaCpp(binary, setting.gguf, setting.log("llama.cpp"), setting.threads, nice=setting.nice)

    return make


def peers(setting):
    """The default model's weights on every server."""
    prompts = Prompts(setting.mlx, setting.seed)
    tandem = ours(setting, setting.gguf)
    figures = []
    if setting.rows & set(PEER_ROWS):
        makers = [tandem]
        if "llama.cpp" in setting.peers:
            makers.append(llama_cpp(setting))
        with running(*makers) as servers:
            figures += alternate(setting, PEER_ROWS, servers, prompts)
    if setting.rows & set(MLX_ROWS) and "mlx-lm" in setting.peers:
        mlx = lambda: MlxLm(  # noqa: E731
            setting.python, setting.mlx, prompts.words, [2], setting.log("mlx-lm"), setting.nice
        )
        with running(tandem, mlx) as servers:
            figures += alternate(setting, MLX_ROWS, servers, prompts)
    return figures


def start(setting):
    """From the start of the process to listening, and to the end of a first answer of one token."""
    prompts = Prompts(setting.mlx, setting.seed + 1)
    listening, answered = [], []
    for _ in range(max(3, setting.rounds)):
        with running(ours(setting, setting.gguf)) as (server,):
            listening.append(server.ready_after)
            answered.append(server.ready_after + server.complete(prompts.fresh(16), 1).first)
    return [
        Figure("start", "start to listening", "s", {"tandem": Spread(listening)}, higher_is_better=False),
        Figure("start", "start to the first token", "s", {"tandem": Spread(answered)}, higher_is_better=False),
    ]


def memory(setting):
    """Sum of PSS after 8 streams and a long prompt, beside the weights and the pages that were ever touched."""
    prompts = Prompts(setting.mlx, setting.seed + 2)
    with running(ours(setting, setting.gguf)) as (server,):
        server.together([prompts.fresh(512) for _ in range(8)], 64)
        server.complete(prompts.fresh(4096), 64)
        used = server.memory()
        predicted = limits.weights_and_pages(server.metrics())
    values = {"tandem": Spread([used]), "weights + KV": Spread([predicted])}
    return [Figure("memory", "sum of PSS", "MiB", values, "weights + KV + 150 MiB", higher_is_better=False)]


def prefix_cache(setting):
    """Cold prompts with the prefix cache and without."""
    prompts = Prompts(setting.mlx, setting.seed + 3)
    rows = {"prefix-cache": ("cold prefill of 2048", "within 3 %", lambda s: 2048 / s.answer(2048, 1).first)}
    on = ours(setting, setting.gguf, "cache on", ("--prefix-cache", "on"))
    off = ours(setting, setting.gguf, "cache off", ("--prefix-cache", "off"))
    with running(on, off) as servers:
        return alternate(setting, rows, servers, prompts)


def grammar(setting):
    """Decode under a JSON schema and without, one stream and eight."""
    prompts = Prompts(setting.mlx, setting.seed + 5)
    rows = {
        "grammar": ("decode under a JSON schema, 1 stream", "", lambda s: s.answer(16, 128).decode_speed),
        "grammar-8": ("8 streams under a JSON schema in all", "", lambda s: s.streams(8)),
    }
    bound = ours(setting, setting.gguf, "bound", kind=Bound)
    with running(bound, ours(setting, setting.gguf, "free")) as servers:
        return alternate(setting, rows, servers, prompts)


def session(setting):
    """A long session goes on: the first token after 500 new tokens, beside the time of the steps that computed them,
    and beside a prompt of 500 alone, which has nothing before it to attend to."""
    model = limits.checkpoint(setting, "smollm2-135m-64k")
    prompts = AnyIds(limits.vocab_of(model), setting.seed + 4)
    length, new = setting.session_tokens, 500
    warm, steps, alone = [], [], []
    with running(ours(setting, model)) as (server,):
        head = prompts.fresh(length)
        server.complete(head, 1)
        for _ in range(setting.rounds):
            before = server.metrics()
            warm.append(server.complete(head + prompts.fresh(new), 1).first)
            after = server.metrics()
            steps.append(after["tandem_engine_step_seconds_sum"] - before["tandem_engine_step_seconds_sum"])
            check_reuse(before, after, length, new)
            alone.append(server.complete(prompts.fresh(new), 1).first)
    values = {"session": Spread(warm), "the steps of the 500": Spread(steps), "500 alone": Spread(alone)}
    what = f"first token of {length} + {new} tokens"
    return [Figure("session", what, "s", values, "the steps of the 500 + 0.05", higher_is_better=False)]


def check_reuse(before, after, length, new):
    """Pages are reused whole, or to a part by a copy."""
    name = "tandem_engine_computed_positions_total"
    computed = after[name] - before[name]
    if not new <= computed <= new + 32:
        sys.exit(f"bench: a session of {length} and {new} new tokens computed {computed} positions")
