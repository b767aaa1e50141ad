#!/usr/bin/env python3
"""Counts the instructions of a one-row decode step of a tiny model on one thread, and fails when they exceed the
recorded ceilings by more than 5 %.

    counts.py [--step-bench FILE] [--valgrind PROGRAM] [--record]    # --record writes the ceilings anew

Instructions do not depend on how busy a machine is. valgrind shows programs no AVX-512, so this guards the host code
and the AVX2 kernels. What is common to two runs of different length cancels.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import checkpoint  # noqa: E402

CEILINGS = HERE / "counts.txt"
TOLERANCE = 0.05
PROMPT, SHORT, LONG = 32, 8, 72


def part_of(function):
    return "kernels" if "tandem::kernels::" in function else "host"


def self_costs(profile):
    """Instructions of kernels and host in a callgrind file with whole names."""
    totals, function, is_call = {"kernels": 0, "host": 0}, "", False
    for line in profile.read_text().splitlines():
        if line.startswith("fn="):
            function = line[3:]
        elif line.startswith("calls="):
            is_call = True  # the next line is what the call cost, which the callee has too
        elif cost := re.fullmatch(r"\d+ (\d+)", line):
            totals[part_of(function)] += 0 if is_call else int(cost[1])
            is_call = False
    return totals


def profile(tools, model, steps, folder):
    out = folder / f"callgrind.{steps}"
    command = [tools.valgrind, "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-strings=no"]
    command += ["--compress-pos=no", str(tools.step_bench), str(model), "1", str(PROMPT), str(steps)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"counts: step_bench under valgrind failed:\n{done.stdout}{done.stderr}")
    return self_costs(out)


def check(tools):
    if shutil.which(tools.valgrind) is None:
        sys.exit(f"counts: {tools.valgrind} does the counting and is not installed: sudo apt-get install valgrind")
    if not pathlib.Path(tools.step_bench).is_file():
        sys.exit(f"counts: there is no {tools.step_bench}: build it with ninja -C build/release step_bench")


def count(tools):
    """Instructions a step, by part."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = checkpoint.write("tiny", folder / "tiny")
        short, long = (profile(tools, model, steps, folder) for steps in (SHORT, LONG))
        return {part: (long[part] - short[part]) // (LONG - SHORT) for part in short}


def read_ceilings():
    lines = [line.split("#")[0].split() for line in CEILINGS.read_text().splitlines()]
    return {line[0]: int(line[1]) for line in lines if line}


def record(counts):
    head = "# Instructions of a one-row step of the tiny model, one thread; written by bench/counts.py --record\n"
    CEILINGS.write_text(head + "".join(f"{part} {number}\n" for part, number in counts.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step-bench", default=HERE.parent / "build/release/bin/step_bench")
    parser.add_argument("--valgrind", default="valgrind", help="the program that counts")
    parser.add_argument("--record", action="store_true", help="write the ceilings anew")
    args = parser.parse_args()
    check(args)
    counts = count(args)
    if args.record:
        record(counts)
    failed = False
    for part, ceiling in read_ceilings().items():
        ratio = counts[part] / ceiling
        failed |= ratio > 1 + TOLERANCE
        print(f"{part:8} {counts[part]:10} instructions a step, ceiling {ceiling}: {ratio:.3f}")
        if ratio < 1 - TOLERANCE:
            print(f"{part} takes less than recorded: lower the ceiling with bench/counts.py --record")
    sys.exit("counts: more than the ceiling; if that is meant, record it anew" if failed else 0)


if __name__ == "__main__":
    main()
