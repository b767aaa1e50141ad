"""Random requests made after the OpenAPI document, right and wrong: no status of 500 or above, no connection dropped, and
every answer is as the document says.
TANDEM_SCHEMA_SECONDS gives them as much time; without it they are few, and the same each time."""

import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

import pytest
from server import ROOT

SECONDS = int(os.environ.get("TANDEM_SCHEMA_SECONDS", "0"))


@pytest.fixture(scope="module")
def document(demo_url):
    with urllib.request.urlopen(f"{demo_url}/openapi.json") as response:
        return json.load(response)


def test_the_document_is_one(document):
    assert document["openapi"].startswith("3.1")
    assert "/v1/chat/completions" in document["paths"]


def test_every_path_and_field_is_told_in_the_docs(document):
    text = "\n".join((ROOT / "docs" / name).read_text() for name in ("api.md", "http.md", "wires.md"))
    code = " ".join(re.findall(r"`([^`\n]*)`", text))
    words = set(re.findall(r"[\w/{}.-]+", code)) | set(re.findall(r"\w+", code))
    untold = [path for path in document["paths"] if path not in words]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            schema = operation.get("requestBody", {"content": {"application/json": {"schema": {}}}})
            fields = schema["content"]["application/json"]["schema"].get("properties", {})
            untold += [f"{path}: {field}" for field in fields if field not in words]
    assert not untold


def test_every_warning_and_metric_is_told_in_the_docs():
    folders = [ROOT / "src" / name for name in ("chat", "protocol", "app")]
    sources = [path for folder in folders for path in folder.rglob("*.cpp") if not path.name.endswith("_test.cpp")]
    source = "\n".join(path.read_text() for path in sources)
    codes = set(re.findall(r'\.code = "(\w+)"', source))
    metrics = set(re.findall(r'"tandem_(\w+)"', source))
    assert len(codes) > 10
    assert len(metrics) > 40
    wires, http = [(ROOT / "docs" / name).read_text() for name in ("wires.md", "http.md")]
    assert not [code for code in sorted(codes) if f"`{code}`" not in wires]
    assert not [name for name in sorted(metrics) if not re.search(rf"`{name}[`{{]", http)]


def test_random_requests_find_no_failure(demo_url, tmp_path):
    words = [
        "run",
        f"{demo_url}/openapi.json",
        "--checks=not_a_server_error,status_code_conformance,response_schema_conformance",
        "--request-timeout=30",
        "--no-color",
    ]
    words += ["--continue-on-failure", "--generation-database=none", "--suppress-health-check=all", "--workers=1"]
    if SECONDS:
        words += [f"--max-time={SECONDS}", "--max-examples=2000", "--phases=coverage,fuzzing"]
    else:
        words += ["--seed=7", "--max-examples=4", "--phases=fuzzing"]
    tool = pathlib.Path(sys.executable).with_name("schemathesis")
    ended = subprocess.run([tool, *words], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS + 300)
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
