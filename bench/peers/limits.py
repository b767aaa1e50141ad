"""What the machine and the model set as limits: read bandwidth, bytes of weights, pages of keys and values."""

import json
import pathlib
import re
import subprocess

import checkpoint as generator
from servers import ROOT

MIB = 1 << 20


def checkpoint(setting, shape):
    return generator.write(shape, setting.cache / shape)


def config_of(model):
    return json.loads((pathlib.Path(model) / "config.json").read_text())


def vocab_of(model):
    return config_of(model)["vocab_size"]


def active_bytes(model):
    return generator.active_bytes(config_of(model))


def read_bandwidth(setting, threads):
    """Bytes a second that `threads` threads read from memory at best, by bench_kernels."""
    command = [str(ROOT / "build/release/bin/bench_kernels"), "--only", "limits", "--threads", str(threads)]
    command += ["--stat", "best", "--rounds", "25"]
    prefix = ["nice", "-n", str(setting.nice)] if setting.nice else []
    text = subprocess.run([*prefix, *command], check=True, capture_output=True, text=True).stdout
    return float(re.search(r"memory read .* ([0-9.]+) GB/s", text).group(1)) * 1e9


def weights_and_pages(metrics):
    """MiB of weights and of pages that hold or held something, from /metrics. Only those pages were ever touched."""
    pool = metrics["tandem_rank_memory_bytes:cache"]
    used, cached, free = (metrics[f"tandem_kv_pages:{state}"] for state in ("used", "cached", "free"))
    return (metrics["tandem_rank_memory_bytes:weights"] + pool * (used + cached) / (used + cached + free)) / MIB
