#!/usr/bin/env python3
"""Checks that src/ keeps to layers.toml: includes between folders, who sees MLX and Boost, length of files."""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def problems_of(path, rules):
    rel = path.relative_to(ROOT / "src")
    folder = rel.parts[0]
    allowed = rules["folders"].get(folder)
    if allowed is None:
        yield f"src/{rel}: folder '{folder}' is not listed in layers.toml"
        return
    text = path.read_text()
    for target in INCLUDE.findall(text):
        top = target.split("/")[0]
        if top in rules["folders"] and top != folder and "*" not in allowed and top not in allowed:
            yield f"src/{rel}: includes {target}, but layers.toml lets {folder} see only {', '.join(allowed) or 'nothing'}"
        for library in ("mlx", "boost"):
            if top == library and not any(str(rel).startswith(p + "/") for p in rules[library]["allowed"]):
                yield f"src/{rel}: includes {target}, but only {', '.join(rules[library]['allowed'])} may"
    lines = text.count("\n")
    if lines > rules["lines"]["file"]:
        yield f"src/{rel}: {lines} lines, at most {rules['lines']['file']}"


def main():
    rules = tomllib.loads((ROOT / "layers.toml").read_text())
    found = [
        p
        for f in sorted((ROOT / "src").rglob("*"))
        if f.suffix in (".h", ".cpp", ".inc")
        for p in problems_of(f, rules)
    ]
    print("\n".join(found) or "layers: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
