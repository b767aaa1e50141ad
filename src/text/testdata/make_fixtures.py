#!/usr/bin/env python3
"""Writes the two small tokenizers that tests use: byte_level.json and metaspace.json."""
import json
from pathlib import Path

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
PLAIN = ["<think>", "</think>", "<tool_call>", "</tool_call>"]


def byte_alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled, extra = {}, 0
    for byte in range(256):
        if byte in printable:
            spelled[byte] = chr(byte)
        else:
            spelled[byte] = chr(256 + extra)
            extra += 1
    return [spelled[byte] for byte in range(256)]


def added(first, special, plain):
    tokens = []
    for content in special + plain:
        tokens.append({"id": first + len(tokens), "content": content, "single_word": False, "lstrip": False,
                       "rstrip": False, "normalized": False, "special": content in special})
    return tokens


def byte_level():
    merges = ["t h", "th e", "Ġ the", "Ġ a", "Ġa n", "Ġan d", "i n", "in g", "e r", "o n", "h e", "l l", "he ll", "hell o",
              "Ġ w", "o r", "l d", "Ġw or", "Ġwor ld", "Ġ Ġ", "ĠĠ ĠĠ", "Ċ Ċ", "Ã ©", "s t", "o p", "Ġ st", "Ġst op", "U s",
              "Us er", "User :", "n d", "Ġ b", "Ġb e", "e n"]
    vocab = {token: index for index, token in enumerate(byte_alphabet())}
    for merge in merges:
        vocab.setdefault(merge.replace(" ", ""), len(vocab))
    regex = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": added(len(vocab), SPECIAL, PLAIN),
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}, level]},
        "post_processor": level, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocab, "merges": [merge.split(" ") for merge in merges]},
    }


def metaspace():
    pieces = ["th", "▁t", "the", "▁the", "in", "an", "▁a", "▁w", "er", "on", "▁an", "▁▁"]  # likeliest first
    vocab = {token: index for index, token in enumerate(["<unk>", "<s>", "</s>"])}
    for byte in range(256):
        vocab[f"<0x{byte:02X}>"] = len(vocab)
    for char in "▁etaoinshrldcu,.wm":
        vocab[char] = len(vocab)
    for piece in pieces:
        vocab.setdefault(piece, len(vocab))
    merges = []
    for piece in pieces:  # every way to make it, as SentencePiece has it
        cuts = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        pairs = [(vocab[a], vocab[b], [a, b]) for a, b in cuts if a in vocab and b in vocab]
        merges += [pair for _, _, pair in sorted(pairs)]
    marks = added(len(vocab), [], ["[THINK]", "[/THINK]"])
    head = [{"id": index, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True} for index, content in enumerate(["<unk>", "<s>", "</s>"])]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": head + marks,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": None,
        "post_processor": {"type": "TemplateProcessing",
                           "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": vocab, "merges": merges},
    }


if __name__ == "__main__":
    folder = Path(__file__).parent
    for name, content in (("byte_level", byte_level()), ("metaspace", metaspace())):
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
