#!/usr/bin/env python3
"""Measures this build beside its peers on the same weights, alternating, through HTTP, and prints ratios.

run.py [ROW…] [--rounds N] [--json FILE]    # ROW: a row, or a group of them; run.py --list names them
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import sys
import tempfile
import time

import layer_shapes
import long_prompts
import rows
import splits


def layers(setting):
    import layer_rows  # needs mlx-lm, which naming the rows does not

    return layer_rows.measure(setting)


GROUPS = {
    "quick": ["start", "decode", "prefill-512", "streams-4", "streams-8", "mlx-decode", "mlx-prefill", "memory"],
    "peers": [*rows.PEER_ROWS, *rows.MLX_ROWS],
    "split": ["tensor", "pipeline"],
    "layers": [*layer_shapes.SHAPES],
    "long": [*long_prompts.LENGTHS, "long-answer"],
}
# What measures which rows, in the order of the table.
MEASURES = {
    rows.peers: [*rows.PEER_ROWS, *rows.MLX_ROWS],
    rows.start: ["start"],
    rows.memory: ["memory"],
    rows.prefix_cache: ["prefix-cache"],
    rows.session: ["session"],
    rows.grammar: ["grammar", "grammar-8"],
    splits.bandwidth: ["bandwidth"],
    splits.moe: ["moe"],
    layers: [*layer_shapes.SHAPES],
    splits.tensor: ["tensor"],
    splits.pipeline: ["pipeline"],
    long_prompts.long_rows: [*long_prompts.LENGTHS, "long-answer"],
}
ROWS = [row for some in MEASURES.values() for row in some]


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def machine():
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "date": time.strftime("%Y-%m-%d"),
        "load before": os.getloadavg()[0],
    }


def text_of(figure):
    """A line for the figure, and one for each ratio."""
    digits = 2 if figure.unit in ("s", "ms") else 1
    shown = "; ".join(f"{name} {spread.text(digits)}" for name, spread in figure.values.items())
    lines = [f"{figure.row:13} {figure.what}, {figure.unit}: {shown}"]
    goal = f"; to reach: {figure.goal}" if figure.goal else ""
    ratios = ", ".join(f"{ratio.text(2)} of {other}" for other, ratio in figure.ratios().items())
    if ratios or goal:
        lines.append(f"{'':13}   ratio {ratios}{goal}" if ratios else f"{'':13}   {goal[2:]}")
    if figure.bound:
        share = figure.share_of_bound().text(2)
        lines.append(f"{'':13}   bound {figure.bound.text(2)}: {figure.bound_by}; reached {share} of it")
    return "\n".join(lines)


def json_of(figure):
    bound = {"bound": figure.bound.json(), "bound by": figure.bound_by} if figure.bound else {}
    return {
        **bound,
        "row": figure.row,
        "what": figure.what,
        "unit": figure.unit,
        "goal": figure.goal,
        "higher is better": figure.higher_is_better,
        "values": {name: spread.json() for name, spread in figure.values.items()},
        "ratios": {other: ratio.json() for other, ratio in figure.ratios().items()},
    }


def chosen_rows(names):
    chosen = set()
    for name in names or ["quick"]:
        if name == "all":
            chosen |= set(ROWS)
        elif name in GROUPS or name in ROWS:
            chosen |= set(GROUPS.get(name, [name]))
        else:
            sys.exit(f"bench: there is no row {name}; --list names them")
    return chosen


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows or groups; without any: quick")
    parser.add_argument("--list", action="store_true", help="name the rows and groups")
    parser.add_argument("--gguf", help="the default model")
    parser.add_argument("--mlx", help="its weights as mlx-lm reads them")
    parser.add_argument("--llama-server", help="llama.cpp's server [built here]")
    parser.add_argument("--cache", type=pathlib.Path, help="folder for random checkpoints")
    parser.add_argument("--peers", default="llama.cpp,mlx-lm", help="those to compare with [%(default)s]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the peers, as tandem takes by itself")
    parser.add_argument("--session-tokens", type=int, default=20_000)
    parser.add_argument("--nice", type=int, default=0, help="of the servers; below 0 where other work runs")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_intermixed_args()


def setting_of(args, chosen, logs):
    return rows.Setting(
        gguf=args.gguf,
        mlx=args.mlx,
        llama_server=args.llama_server,
        python=sys.executable,
        cache=args.cache,
        logs=logs,
        threads=args.threads,
        rounds=args.rounds,
        seed=args.seed,
        nice=args.nice,
        rows=chosen,
        peers=set(filter(None, args.peers.split(","))),
        session_tokens=args.session_tokens,
    )


def main():
    args = arguments()
    if args.list:
        print("rows:", *ROWS)
        for name, members in GROUPS.items():
            print(f"{name}:", *members)
        print("all: every row")
        return
    chosen = chosen_rows(args.rows)
    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores, {about['date']}, load {about['load before']:.1f};", end=" ")
    print(f"medians (min to max) of {args.rounds} rounds, ratios round by round", flush=True)
    logs = pathlib.Path(tempfile.mkdtemp(prefix="tandem-bench-"))
    setting = setting_of(args, chosen, logs)
    figures = []
    for measure, some in MEASURES.items():
        if not chosen & set(some):
            continue
        begin = time.perf_counter()
        new = measure(setting)
        figures += new
        for figure in new:
            print(text_of(figure), flush=True)
        print(f"bench: {measure.__name__} took {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({**about, "rows": [json_of(f) for f in figures]}, indent=2))
    shutil.rmtree(logs)


if __name__ == "__main__":
    main()
