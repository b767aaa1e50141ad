#!/usr/bin/env python3
"""Checks that every registry.inc, routes.inc and commands.inc under src/ lists its entries sorted and once."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    bad = []
    for path in sorted((ROOT / "src").rglob("*.inc")):
        text = path.read_text()
        for macro in ("X", "V1"):
            entries = re.findall(rf"^{macro}\((.*)\)", text, re.M)
            if entries != sorted(set(entries)):
                bad.append(f"{path.relative_to(ROOT)}: entries of {macro} are not sorted and unique")
    print("\n".join(bad) or "registries: ok")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
