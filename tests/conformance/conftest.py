"""The server under test: TANDEM_URL names a running one, TANDEM_COMMAND starts another program that prints its URL,
TANDEM_BIN (default build/release/bin/tandem) is started as `serve --port 0`, with TANDEM_MODEL when that is set.
TANDEM_DEMO (default build/release/bin/protocol_demo) is a scripted model behind the real wires, for what no small model
does on demand."""

import os
import pathlib
import queue
import re
import shlex
import signal
import subprocess
import threading

import anthropic
import openai
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_LIMIT_S = 300
STOP_LIMIT_S = 60


def command():
    if "TANDEM_COMMAND" in os.environ:
        return shlex.split(os.environ["TANDEM_COMMAND"])
    binary = os.environ.get("TANDEM_BIN", str(ROOT / "build/release/bin/tandem"))
    model = os.environ.get("TANDEM_MODEL")
    return [binary, "serve", *([model] if model else []), "--port", "0"]


def find_url(process):
    """The first URL the process prints; its output is read to the end by a thread."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        line = lines.get(timeout=START_LIMIT_S)
        assert line is not None, "the server ended before it printed its URL"
        found = re.search(r"http://[^\s/]+:\d+", line)
        if found:
            return found.group(0)


def running(words):
    """The URL of a server that is started with these words, and ended afterwards."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        yield find_url(process)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=STOP_LIMIT_S)
    assert code == 0, f"the server ended with {code} after SIGTERM"


@pytest.fixture(scope="session")
def url():
    if "TANDEM_URL" in os.environ:
        yield os.environ["TANDEM_URL"].rstrip("/")
    else:
        yield from running(command())


@pytest.fixture(scope="session")
def demo_url():
    demo = os.environ.get("TANDEM_DEMO", str(ROOT / "build/release/bin/protocol_demo"))
    if not pathlib.Path(demo).exists():
        pytest.skip(f"{demo} is not built")
    yield from running([demo])


@pytest.fixture(scope="session")
def claude(url):
    """The official SDK of the Anthropic wire."""
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=300) as made:
        yield made


@pytest.fixture(scope="session")
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=300) as made:
        yield made


@pytest.fixture(scope="session")
def model(client):
    return client.models.list().data[0].id
