#!/usr/bin/env python3
"""Checks that src/ keeps to layers.toml: includes between folders, who sees MLX and Boost, length of files, that nothing
is allowed which no file needs; and that the product includes no header of the tests (…_test.h, doctest)."""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
LIBRARIES = ("mlx", "boost")
OF_TESTS = re.compile(r"_(test|fuzz|bench)\.(h|cpp)$")


def is_within(rel, folders):
    return any(str(rel).startswith(folder + "/") for folder in folders)


def problems_of(rel, text, rules):
    folder = rel.parts[0]
    allowed = rules["folders"].get(folder)
    if allowed is None:
        yield f"src/{rel}: folder '{folder}' is not listed in layers.toml"
        return
    for target in INCLUDE.findall(text):
        top = target.split("/")[0]
        if top in rules["folders"] and top != folder and "*" not in allowed and top not in allowed:
            yield f"src/{rel}: includes {target}, but layers.toml lets {folder} see only {', '.join(allowed) or 'nothing'}"
        if top in LIBRARIES and not is_within(rel, rules[top]["allowed"]):
            yield f"src/{rel}: includes {target}, but only {', '.join(rules[top]['allowed'])} may"
        if not OF_TESTS.search(rel.name) and (top == "doctest" or OF_TESTS.search(target)):
            yield f"src/{rel}: includes {target}, which is for files named …_test, …_fuzz or …_bench"
    lines = text.count("\n")
    if lines > rules["lines"]["file"]:
        yield f"src/{rel}: {lines} lines, at most {rules['lines']['file']}"


def unused(texts, rules):
    """What layers.toml allows and no file makes use of."""
    used = {(rel, target.split("/")[0]) for rel, text in texts.items() for target in INCLUDE.findall(text)}
    edges = [(folder, target) for folder, allowed in rules["folders"].items() for target in allowed if target != "*"]
    edges += [(folder, library) for library in LIBRARIES for folder in rules[library]["allowed"]]
    for folder, target in edges:
        if not any(top == target and is_within(rel, [folder]) for rel, top in used):
            yield f"layers.toml: lets {folder} see {target}, which no file of it includes"


def main():
    rules = tomllib.loads((ROOT / "layers.toml").read_text())
    files = sorted(f for f in (ROOT / "src").rglob("*") if f.suffix in (".h", ".cpp", ".inc"))
    texts = {f.relative_to(ROOT / "src"): f.read_text() for f in files}
    found = [problem for rel, text in texts.items() for problem in problems_of(rel, text, rules)]
    found += unused(texts, rules)
    print("\n".join(found) or "layers: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
