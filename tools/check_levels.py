#!/usr/bin/env python3
"""Checks that objects compiled for one CPU level share no function with the rest of the program.

    check_levels.py OBJECT…

A function that the linker may merge with a namesake from another file (weak in nm) would bring its instructions to
every machine. Those of level_X objects must name a type of their level.
"""

import subprocess
import sys

TYPES = {
    "level_avx2": ["Avx2Vec"],
    "level_avx512": ["Avx512Vec"],
    "level_amx": ["Avx512Vec", "AmxKernel"],
    "level_neon": ["NeonVec"],
    "level_neon_dot": ["DotKernel"],
}


def level_of(path):
    return path.rsplit("/", 1)[-1].split(".", 1)[0]


def shared_functions(path, types):
    lines = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in lines:
        kind, name = line[17:18], line[19:]
        if kind in "WVu" and not name.startswith("DW.ref.") and not any(t in name for t in types):
            yield name


def main(paths):
    levels = [p for p in paths if level_of(p) in TYPES]
    if not levels:
        sys.exit(f"check_levels: expected an object of one of {', '.join(TYPES)}, got {len(paths)} others")
    found = [(p, name) for p in levels for name in shared_functions(p, TYPES[level_of(p)])]
    for path, name in found:
        print(f"{level_of(path)}: {name} may replace the same function of other files: make it local or a template")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
