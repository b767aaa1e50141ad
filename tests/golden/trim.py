#!/usr/bin/env python3
"""Keep of make_tiny.py's golden.safetensors what golden_test reads: trim.py IN OUT."""

import json
import pathlib
import struct
import sys

KEPT = ("tokens", "full.logits", "chunk.sizes", "greedy.tokens", "greedy.logits", "batch.")


def main():
    content = pathlib.Path(sys.argv[1]).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header, begin = json.loads(content[8 : 8 + size]), 8 + size
    kept, blobs, offset = {}, [], 0
    for name in sorted(header):
        if name == "__metadata__" or not name.startswith(KEPT):
            continue
        a, b = header[name]["data_offsets"]
        kept[name] = dict(header[name], data_offsets=[offset, offset + b - a])
        blobs.append(content[begin + a : begin + b])
        offset += b - a
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(sys.argv[2]).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


if __name__ == "__main__":
    main()
