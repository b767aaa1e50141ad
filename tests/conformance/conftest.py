"""The server under test: TANDEM_URL names a running one, TANDEM_COMMAND starts another program that prints its URL,
TANDEM_BIN (default build/release/bin/tandem) is started as `serve --port 0`, with TANDEM_MODEL when that is set.
TANDEM_DEMO (default build/release/bin/protocol_demo) is a scripted model behind the real wires, for what no small model
does on demand."""

import os
import pathlib
import shlex

import anthropic
import openai
import pytest
from server import BINARY, ROOT, running


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


def demo():
    """The scripted model's program."""
    demo = os.environ.get("TANDEM_DEMO", str(ROOT / "build/release/bin/protocol_demo"))
    if not pathlib.Path(demo).exists():
        pytest.skip(f"{demo} is not built")
    return demo


@pytest.fixture(scope="session")
def demo_url():
    yield from running([demo()])


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
