"""The server under test: TANDEM_URL names a running one, TANDEM_COMMAND starts another program that prints its URL,
TANDEM_BIN (default build/release/bin/tandem) is started as `serve --port 0`, with TANDEM_MODEL when that is set; and with
a script (demo.json) for what no small model does on demand."""

import os
import shlex

import pytest
from sdks import anthropic_at, openai_at
from server import BINARY, ROOT, running, script_command


def command():
    if "TANDEM_COMMAND" in os.environ:
        return shlex.split(os.environ["TANDEM_COMMAND"])
    model = os.environ.get("TANDEM_MODEL")
    return [BINARY, "serve", *([model] if model else []), "--port", "0"]


@pytest.fixture(scope="session")
def url():
    if "TANDEM_URL" in os.environ:
        yield os.environ["TANDEM_URL"].rstrip("/")
    else:
        yield from running(command())


def demo_command(*options):
    """A server that calls the tools of demo.json and tells their results."""
    script = ROOT / "tests/conformance/demo.json"
    return script_command(script, "--alias", "demo", "--reasoning-dialect", "think", *options)


@pytest.fixture(scope="session")
def demo_url():
    yield from running(demo_command())


@pytest.fixture(scope="session")
def demo(demo_url):
    with openai_at(demo_url) as made:
        yield made


@pytest.fixture(scope="session")
def demo_claude(demo_url):
    with anthropic_at(demo_url) as made:
        yield made


@pytest.fixture(scope="session")
def claude(url):
    """The official SDK of the Anthropic wire."""
    with anthropic_at(url, timeout=300) as made:
        yield made


@pytest.fixture(scope="session")
def client(url):
    with openai_at(url, timeout=300) as made:
        yield made


@pytest.fixture(scope="session")
def model(client):
    return client.models.list().data[0].id
