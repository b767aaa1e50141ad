#!/usr/bin/env python3
"""Compares the speed of two builds, run by turns so that what disturbs one disturbs the other.

    ab.py OLD NEW [--rounds N] [--model MODEL] …    # folders of builds, such as build/release and a copy of it

Prints the ratio NEW / OLD of each figure, the median of the rounds' ratios with its spread. For what counts.py cannot
see: AVX-512, threads, memory. To keep a build: cp -r build/release/bin /some/folder.
"""

import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

from spread import Spread  # noqa: E402


def binary_of(folder):
    for path in (folder / "bin/tandem", folder / "tandem"):
        if path.exists():
            return path
    sys.exit(f"ab: there is no tandem in {folder} or its bin")


def measure(binary, args):
    """Figures of one run of `tandem bench`, all of them speeds."""
    command = [str(binary), "bench", "-n", "1", "-p", str(args.prompt), "-g", str(args.generate), "-b", str(args.batch)]
    command += ["--rank-log", "/dev/null", *([args.model] if args.model else [])]
    if args.threads:
        command += ["--threads", str(args.threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"ab: {' '.join(command)}:\n{done.stderr}")
    return {name: float(value) for name, value in re.findall(r"^(\w+) +([0-9.]+) tok/s", done.stdout, re.M)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--model", help="[the default model]")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    builds = {"old": binary_of(args.old), "new": binary_of(args.new)}
    rounds = {"old": [], "new": []}
    for number in range(args.rounds):
        for name in ("old", "new") if number % 2 == 0 else ("new", "old"):
            rounds[name].append(measure(builds[name], args))
    print(f"median (min to max) of {args.rounds} rounds, ratio round by round")
    for figure in rounds["old"][0]:
        old, new = (Spread(one[figure] for one in rounds[name]) for name in ("old", "new"))
        print(f"{figure:8} old {old.text()} tok/s, new {new.text()} tok/s, ratio {new.ratio_to(old).text(3)}")


if __name__ == "__main__":
    main()
