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
    config = config_of(model)
    return config.get("text_config", config)["vocab_size"]


def active_bytes(model):
    return generator.active_bytes(config_of(model))


def of_kernels(setting, threads, *options):
    """What bench_kernels prints at best."""
    command = [str(ROOT / "build/release/bin/bench_kernels"), "--threads", str(threads), "--stat", "best", *options]
    prefix = ["nice", "-n", str(setting.nice)] if setting.nice else []
    return subprocess.run([*prefix, *command], check=True, capture_output=True, text=True).stdout


def read_bandwidth(setting, threads):
    """Bytes a second that `threads` threads read from memory at best, by bench_kernels."""
    text = of_kernels(setting, threads, "--only", "limits", "--rounds", "25")
    return float(re.search(r"memory read .* ([0-9.]+) GB/s", text).group(1)) * 1e9


def product_rate(setting, threads, shape):
    """Multiplications and additions a second in products of 512 rows and a matrix of bench_kernels."""
    text = of_kernels(setting, threads, "--only", "matmul", "--shape", shape, "--tokens", "512", "--rounds", "5")
    return float(re.search(r" ([0-9.]+) GFLOP/s", text).group(1)) * 1e9


def weights_and_pages(metrics):
    """MiB of weights and of pages that hold or held something, from /metrics. Only those pages were ever touched."""
    pool = metrics["tandem_rank_memory_bytes:cache"]
    used, cached, free = (metrics[f"tandem_kv_pages:{state}"] for state in ("used", "cached", "free"))
    return (metrics["tandem_rank_memory_bytes:weights"] + pool * (used + cached) / (used + cached + free)) / MIB
