#!/usr/bin/env python3
"""Speed of tandem's server beside mlx-lm on the same weights: alternating rounds, medians with spread, ratios.

Through HTTP for tandem (the real binary, streaming), in its own process for mlx-lm (stream_generate, no HTTP, which
favours it). Prints a table; --json FILE writes the figures.
"""

import argparse
import http.client
import json
import os
import pathlib
import platform
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Tandem:
    """The real server on a free port."""

    def __init__(self, model, extra=()):
        command = [str(ROOT / "build/release/bin/tandem"), "serve", model, "--port", "0", *extra]
        self.started = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = None
        for line in self.process.stdout:
            if "http://" in line:
                self.port = int(line.split("http://", 1)[1].split("/")[0].rsplit(":", 1)[1])
                break
        if self.port is None:
            sys.exit("bench: tandem serve did not start")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def complete(self, prompt, tokens):
        """Streams a completion of token ids; returns (seconds to first token, seconds in all, usage)."""
        body = {
            "prompt": prompt,
            "max_tokens": tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        start = time.perf_counter()
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            sys.exit(f"bench: {response.status} {response.read().decode()}")
        first, usage = None, None
        for raw in response:
            line = raw.decode().strip()
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            if first is None and chunk["choices"]:
                first = time.perf_counter() - start
        connection.close()
        return first, time.perf_counter() - start, usage

    def pids(self):
        found = [self.process.pid]
        for pid in os.listdir("/proc"):
            if pid.isdigit():
                try:
                    parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                except OSError:
                    continue
                if parent == self.process.pid:
                    found.append(int(pid))
        return found

    def memory(self):
        """Sum of proportional set sizes, MiB."""
        total = 0
        for pid in self.pids():
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        return total / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def ids(count, seed):
    random.seed(seed)
    return [random.randrange(1000, 40000) for _ in range(count)]


def tandem_round(server, args, seed):
    prefill_first, _, _ = server.complete(ids(args.prompt, seed), 1)
    short, whole, _ = server.complete(ids(16, seed + 1), args.generate)
    figures = {
        "prefill tok/s": args.prompt / prefill_first,
        "decode tok/s": (args.generate - 1) / (whole - short),
    }
    for streams in (4, 8):
        figures[f"{streams} streams tok/s"] = streams_round(server, streams, args.generate, seed)
    return figures


def streams_round(server, streams, tokens, seed):
    start = time.perf_counter()
    threads = [threading.Thread(target=server.complete, args=(ids(16, seed + 10 + i), tokens)) for i in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return streams * tokens / (time.perf_counter() - start)


MLX_ROUND = """
import json, sys, random
import mlx.core as mx
from mlx_lm import load, stream_generate
model, tokenizer = load(sys.argv[1])
tokenizer.eos_token_ids.clear()
for line in sys.stdin:
    prompt, prompt_tokens, tokens = json.loads(line)
    for r in stream_generate(model, tokenizer, prompt, max_tokens=1): pass
    prefill = r.prompt_tps
    for r in stream_generate(model, tokenizer, prompt[:16], max_tokens=tokens): pass
    print(json.dumps({"prefill tok/s": prefill, "decode tok/s": r.generation_tps}), flush=True)
"""


class MlxLm:
    def __init__(self, checkpoint):
        self.process = subprocess.Popen(
            [sys.executable, "-c", MLX_ROUND, checkpoint], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def round(self, args, seed):
        job = json.dumps([ids(min(args.prompt, args.peer_prompt), seed), args.prompt, args.peer_generate])
        self.process.stdin.write(job + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait(60)


def cold_start(model):
    server = Tandem(model)
    first, _, _ = server.complete(ids(16, 99), 1)
    seconds = time.perf_counter() - server.started
    ready = seconds - first
    server.stop()
    return {"start to listening s": ready, "start to first token s": seconds}


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def summary(rounds):
    return {
        key: {"median": statistics.median(values), "min": min(values), "max": max(values)}
        for key in rounds[0]
        for values in [[r[key] for r in rounds]]
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--mlx", required=True)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--peer-prompt", type=int, default=64, help="mlx-lm's prefill speed does not grow with length")
    parser.add_argument("--peer-generate", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()

    starts = [cold_start(args.gguf) for _ in range(3)]
    server, peer = Tandem(args.gguf), MlxLm(args.mlx)
    ours, theirs = [], []
    for i in range(args.rounds):
        ours.append(tandem_round(server, args, 1000 * i))
        theirs.append(peer.round(args, 1000 * i))
    memory = server.memory()
    code = server.stop()
    peer.stop()

    figures = {"tandem": summary(ours), "mlx-lm": summary(theirs), "start": summary(starts)}
    print(
        f"{cpu_name()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}; median (min to max) of {args.rounds} rounds"
    )
    for key, value in figures["tandem"].items():
        line = f"{key:18} tandem {value['median']:8.1f} ({value['min']:.1f} to {value['max']:.1f})"
        other = figures["mlx-lm"].get(key)
        if other:
            line += f"   mlx-lm {other['median']:6.1f} ({other['min']:.1f} to {other['max']:.1f})"
            line += f"   ratio {value['median'] / other['median']:.1f}"
        print(line)
    for key, value in figures["start"].items():
        print(f"{key:24} {value['median']:.2f} ({value['min']:.2f} to {value['max']:.2f})")
    print(f"memory (sum of PSS)      {memory:.0f} MiB; exit code after SIGTERM: {code}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({**figures, "memory MiB": memory}, indent=2))


if __name__ == "__main__":
    main()
