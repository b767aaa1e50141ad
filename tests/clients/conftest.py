"""Real command-line clients, in a namespace without a network: run.sh installs them and starts this."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/conformance"))


def interfaces():
    lines = pathlib.Path("/proc/net/dev").read_text().splitlines()[2:]
    return [line.split(":")[0].strip() for line in lines]


@pytest.fixture(scope="session", autouse=True)
def without_network():
    if interfaces() != ["lo"]:
        pytest.skip("this is no namespace without a network: start tests/clients/run.sh")
