"""Layers at published dimensions beside what the machine reads and multiplies."""

import layer_checkpoint
import layer_shapes
import limits
from prompts import AnyIds
from rows import Figure, ours, running
from spread import Spread

PROMPTS = (512, 2048)
MOST_WORK = 3e12  # multiplications and additions of a prompt: longer ones are left out
ANSWER = 48
GOAL = "0.5 of it"
# The matrix of bench_kernels that is stored as most of the layer's are.
PRODUCTS = {"affine": "1.7B gate_up q4", "mxfp4": "20B experts mxfp4"}


def layer(setting, row):
    """In each round: reads, products, an answer, and prompts of two lengths."""
    model = layer_checkpoint.write(row, setting.cache / row)
    work = layer_checkpoint.work_of(model)
    prompts = AnyIds(limits.vocab_of(model), setting.seed + 9)
    shape = PRODUCTS[limits.config_of(model)["quantization"].get("mode", "affine")]
    reads, products, decode = [], [], []
    prefill = {length: [] for length in PROMPTS if length * work.products < MOST_WORK}
    with running(ours(setting, model, row, ("--context", "4096"))) as (server,):
        server.complete(prompts.fresh(16), 4)
        for _ in range(setting.rounds):
            reads.append(limits.read_bandwidth(setting, setting.threads) / 1e9)
            decode.append(server.complete(prompts.fresh(16), ANSWER).decode_speed * work.read_bytes / 1e9)
            products.append(limits.product_rate(setting, setting.threads, shape) / 1e9)
            for length in prefill:
                speed = length / server.complete(prompts.fresh(length), 1).first
                prefill[length].append(speed * work.products / 1e9)
    decoded = {"tandem": Spread(decode), "memory reads": Spread(reads)}
    what = f"decode, {work.read_bytes / 1e6:.0f} MB of weights a token"
    figures = [Figure(row, what, "GB/s", decoded, GOAL)]
    for length, speeds in prefill.items():
        values = {"tandem": Spread(speeds), "products of 512 rows": Spread(products)}
        figures.append(Figure(row, f"prefill of {length}, products with weights", "GFLOP/s", values, GOAL))
    return figures


def measure(setting):
    figures = []
    for row in layer_shapes.SHAPES:
        if row in setting.rows:
            figures += layer(setting, row)
    return figures
