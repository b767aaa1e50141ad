"""Long prompts and a long answer on a tiny model: memory as predicted, and steps that grow only with attention."""

import time

import limits
from prompts import AnyIds
from rows import Figure, ours, running
from spread import Spread

LENGTHS = {"long-30k": 30_000, "long-82k": 82_000, "long-200k": 200_000, "long-354k": 354_000}
ANSWER = 10_000
CONTEXT = 400_000


def prompts_of(setting, model):
    return AnyIds(limits.vocab_of(model), setting.seed + 8)


def memory_figure(server, row, what, before):
    """What the process grew by, beside the pages that it says it holds."""
    grown = server.memory() - before["memory"]
    pages = limits.weights_and_pages(server.metrics()) - before["predicted"]
    values = {"tandem": Spread([grown]), "pages": Spread([pages])}
    return Figure(row, f"{what}: memory that it added", "MiB", values, "the pages + 64 MiB", higher_is_better=False)


def state_of(server):
    return {"memory": server.memory(), "predicted": limits.weights_and_pages(server.metrics())}


def prompt(setting, model, row):
    """A server of its own, so that nothing is reused and the memory is this prompt's."""
    length = LENGTHS[row]
    prompts = prompts_of(setting, model)
    with running(ours(setting, model, row, ("--context", str(CONTEXT)))) as (server,):
        server.complete(prompts.fresh(2048), 8)
        before = state_of(server)
        answer = server.complete(prompts.fresh(length), 33)
        per_step = 1000 / answer.decode_speed
        return [
            Figure(row, f"prompt of {length}: first token", "s", {"tandem": Spread([answer.first])}, "", False),
            Figure(row, f"prompt of {length}: a decode step", "ms", {"tandem": Spread([per_step])}, "", False),
            memory_figure(server, row, f"prompt of {length}", before),
        ]


def answer(setting, model):
    """10,000 tokens of answer: the last thousand steps beside the first, and what attention alone explains."""
    prompts = prompts_of(setting, model)
    with running(ours(setting, model, "long-answer", ("--context", str(CONTEXT)))) as (server,):
        server.complete(prompts.fresh(2048), 8)
        before = state_of(server)
        got = server.complete(prompts.fresh(16), ANSWER)
        deep = server.complete(prompts.fresh(ANSWER), 500)  # the same depth without the long answer before it
        early, late = pace(got.times, 500, 1500), pace(got.times, -1001, -1)
        beside = pace(deep.times, 100, len(deep.times) - 1)
        speed = {"late": Spread([late]), "after a prompt as long": Spread([beside]), "early": Spread([early])}
        return [
            Figure("long-answer", f"step in an answer of {ANSWER}", "ms", speed, "as after a prompt as long", False),
            memory_figure(server, "long-answer", f"answer of {ANSWER} and prompt of {ANSWER}", before),
        ]


def pace(times, begin, end):
    """Milliseconds a piece between two of them."""
    begin, end = begin % len(times), end % len(times)
    return 1000 * (times[end] - times[begin]) / (end - begin)


def long_rows(setting):
    model = limits.checkpoint(setting, "tiny-512k")
    figures = []
    for row in LENGTHS:
        if row in setting.rows:
            begin = time.perf_counter()
            figures += prompt(setting, model, row)
            print(f"bench: {row} took {time.perf_counter() - begin:.0f} s", flush=True)
    if "long-answer" in setting.rows:
        figures += answer(setting, model)
    return figures
