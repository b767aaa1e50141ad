"""The servers that are measured: each is a process behind HTTP that streams completions of token ids."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@dataclass
class Answer:
    """When the pieces of one answer came, in seconds since the request was sent."""

    prompt_tokens: int
    times: list[float] = field(default_factory=list)  # of each piece of text
    end: float = 0
    usage: dict = field(default_factory=dict)

    @property
    def first(self):
        return self.times[0]

    @property
    def tokens(self):
        return self.usage.get("completion_tokens", len(self.times))

    @property
    def decode_speed(self):
        """Tokens a second after the first one. The last piece may carry no text, so the end counts."""
        return (self.tokens - 1) / (self.end - self.first)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def children_of(parent):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def pss_mib(pids):
    """Sum of proportional set sizes: pages that processes share are counted once."""
    total = 0
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


class Server:
    """Starts a command, waits until it answers, and streams completions from it. `nice` is of the server's process:
    below 0 on a machine that does other work too (needs the right to)."""

    name = "server"
    health = "/health"

    def __init__(self, command, port, log, nice=0, environment=None):
        self.port = port
        self.log_path = log
        self.started = time.perf_counter()
        prefix = ["nice", "-n", str(nice)] if nice else []
        with open(log, "w") as out:
            self.process = subprocess.Popen(
                [*prefix, *command], stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
            )
        self.wait_ready()
        self.ready_after = time.perf_counter() - self.started

    def wait_ready(self, seconds=300):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.health}", timeout=2) as reply:
                    if reply.status == 200:
                        return
            except OSError:
                time.sleep(0.01)
        sys.exit(f"bench: {self.name} did not start:\n{pathlib.Path(self.log_path).read_text()[-2000:]}")

    def body(self, prompt, tokens):
        return {"prompt": prompt, "ignore_eos": True}

    def complete(self, prompt, tokens, timeout=1800):
        """Streams an answer of exactly `tokens` tokens, greedy."""
        body = {
            "max_tokens": tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.body(prompt, tokens),
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        answer = Answer(len(prompt))
        start = time.perf_counter()
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            sys.exit(f"bench: {self.name}: {response.status} {response.read().decode()}")
        for raw in response:
            if not raw.startswith(b"data: {"):
                continue
            now = time.perf_counter() - start
            chunk = json.loads(raw[6:])
            answer.usage = chunk.get("usage") or answer.usage
            if chunk.get("choices"):
                answer.times.append(now)
                answer.end = now
        connection.close()
        self.check(answer, tokens)
        return answer

    def check(self, answer, tokens):
        """A server that stops early, or that reads the prompt otherwise, would be measured at other work."""
        got = answer.usage.get("prompt_tokens", answer.prompt_tokens)
        if answer.tokens != tokens or abs(got - answer.prompt_tokens) > 1:
            sys.exit(
                f"bench: {self.name} took {got} prompt tokens of {answer.prompt_tokens} and gave {answer.tokens} of {tokens}"
            )

    def together(self, prompts, tokens):
        """All at once; returns the seconds until the last one ended."""
        answers = [None] * len(prompts)

        def one(index):
            answers[index] = self.complete(prompts[index], tokens)

        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(prompts))]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if None in answers:
            sys.exit(f"bench: a stream of {self.name} failed")
        return time.perf_counter() - start

    def pids(self):
        return [self.process.pid, *children_of(self.process.pid)]

    def memory(self):
        return pss_mib(self.pids())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Tandem(Server):
    name = "tandem"
    health = "/health/ready"

    def __init__(self, model, log, extra=(), nice=0, build="build/release"):
        port = free_port()
        binary = ROOT / build / "bin/tandem"
        super().__init__([str(binary), "serve", str(model), "--port", str(port), *extra], port, log, nice)

    def metrics(self):
        """Samples of /metrics by name, and by `name:label value`; what falls together is summed. Ranks tell their
        figures every second."""
        time.sleep(1.5)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as reply:
            text = reply.read().decode()
        found = {}
        for name, labels, value in re.findall(r"^(\w+)(?:\{([^}]*)\})? (\S+)$", text, re.M):
            for key in [name, *(f"{name}:{label}" for label in re.findall(r'="([^"]*)"', labels))]:
                found[key] = found.get(key, 0) + float(value)
        return found


class Bound(Tandem):
    """Its answers are JSON of a schema that never ends within them."""

    SCHEMA = {
        "type": "array",
        "minItems": 500,
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
            "required": ["name", "size"],
        },
    }

    def body(self, prompt, tokens):
        return {"prompt": prompt, "guided_json": self.SCHEMA}


def llama_server(model):
    """Builds it when it is not there."""
    command = [str(ROOT / "bench/peers/llama_cpp.sh"), str(model)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(done.stdout.strip()) / "llama-server"


class LlamaCpp(Server):
    """Its server with its defaults, but for threads, slots with room for a whole context each (one shared cache is
    slower where an idle slot's positions lie in it), and no web page."""

    name = "llama.cpp"

    def __init__(self, binary, model, log, threads, slots=8, context=8192, nice=0):
        port = free_port()
        command = [str(binary), "-m", str(model), "-t", str(threads), "-np", str(slots), "-no-kvu"]
        command += ["-c", str(slots * context), "--port", str(port), "--no-webui", "--cache-ram", "0", "--offline"]
        super().__init__(command, port, log, nice)

    def body(self, prompt, tokens):
        return {"prompt": prompt, "ignore_eos": True, "cache_prompt": False}


class MlxLm(Server):
    """Takes text: `words` gives each id's word, of which a text is tokenized to the very same ids."""

    name = "mlx-lm"

    def __init__(self, python, checkpoint, words, end_ids, log, nice=0):
        port = free_port()
        self.words = words
        self.bias = {str(i): -1e9 for i in end_ids}
        command = [str(python), "-m", "mlx_lm", "server", "--model", str(checkpoint), "--port", str(port)]
        super().__init__(command, port, log, nice, {"HF_HUB_OFFLINE": "1"})

    def body(self, prompt, tokens):
        return {"prompt": "".join(self.words[i] for i in prompt), "logit_bias": self.bias}
