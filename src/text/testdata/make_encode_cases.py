#!/usr/bin/env python3
"""Writes encode_cases.json: what the Python package tokenizers (0.23) makes of texts with the two fixtures and with
other splitting rules in the byte-level one."""
import json
from pathlib import Path

from tokenizers import Tokenizer

FOLDER = Path(__file__).parent
TEXTS = ["", " ", "hello world", "the  and\n\n  User: stop", "<|im_start|>hello<think> the</think>", "é 한국어 👨‍👩‍👧", "it's 1234 DON'T I'll",
         "a\tb\r\n\r\n c", "   leading", "trailing   ", "x = {'a': [1, 22, 333]}; // héllo\n\tif (x) { y() }\n", "e\u0301 combining ñ", "▁the ▁",
         "one  two   three    four", "12345678 ١٢٣ Ⅷ ²", "ÀÉ camelCase HTTPServer", "\u2028\u00a0\u3000", "a😀b"]
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


RULES = {
    "as it is": None,
    "gpt-2": {**LEVEL, "use_regex": True},
    "digits apart": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {**LEVEL, "use_regex": True}]},
    "marks belong to words": {"type": "Sequence", "pretokenizers": [split(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), LEVEL]},
    "several rules": {"type": "Sequence", "pretokenizers": [
        split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"),
        {"type": "Digits", "individual_digits": True}, LEVEL]},
    "removed and inverted": {"type": "Sequence", "pretokenizers": [split(r"\p{L}+|\p{N}{1,2}|[^\p{L}\p{N}]+", "Removed", True), LEVEL]},
}


def cases(name, rule):
    config = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    if rule is not None:
        config["pre_tokenizer"] = rule
    tokenizer = Tokenizer.from_str(json.dumps(config))
    out = []
    for text in TEXTS:
        out.append({"text": text, "plain": tokenizer.encode(text, add_special_tokens=False).ids,
                    "with_special": tokenizer.encode(text, add_special_tokens=True).ids})
    return out


if __name__ == "__main__":
    groups = [{"name": name, "fixture": "byte_level.json", "pre_tokenizer": rule, "cases": cases("byte_level", rule)}
              for name, rule in RULES.items()]
    groups.append({"name": "as it is", "fixture": "metaspace.json", "pre_tokenizer": None, "cases": cases("metaspace", None)})
    (FOLDER / "encode_cases.json").write_text(json.dumps(groups, ensure_ascii=False) + "\n", encoding="utf-8")
