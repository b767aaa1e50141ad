"""The official SDKs in Node, by every helper of theirs (node/*.test.mjs), against a scripted server (sdk.json)."""

import os
import shutil
import subprocess

import pytest
from server import ROOT, scripted

HERE = ROOT / "tests/conformance"
MODULES = ROOT / ".deps/node/node_modules"
LIMIT_S = 120


@pytest.fixture(scope="module")
def sdk_url():
    if shutil.which("node") is None:
        pytest.skip("there is no node here")
    if not (MODULES / "openai").exists():
        pytest.skip("the SDKs are not installed: ./dev bootstrap does it where npm is there")
    yield from scripted(HERE / "sdk.json", "--reasoning-dialect", "think")


@pytest.mark.parametrize("file", sorted((HERE / "node").glob("*.test.mjs")), ids=lambda file: file.name.split(".")[0])
def test_every_helper(sdk_url, file):
    environment = {**os.environ, "TANDEM_URL": sdk_url, "TANDEM_NODE_MODULES": str(MODULES)}
    words = ["node", "--test", "--test-reporter=spec", str(file)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
