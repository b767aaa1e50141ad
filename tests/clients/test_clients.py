"""Each client reads a file, edits it, runs a command and tells what it printed, set up by `tandem agent`. A script plays
the model (task.json), so that what is tested is the wire: what the client sends is understood, what it needs is there, and
it asks nothing twice."""

import dataclasses
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import urllib.request

import pytest
from conftest import ROOT
from server import BINARY, scripted

CLIENTS = ROOT / ".deps/clients"
NODE = CLIENTS / "node/node_modules/node/bin"
LIMIT_S = 240
CONTEXT = "131072"


@dataclasses.dataclass
class Client:
    name: str
    arguments: list  # behind `tandem agent NAME --run --`; the prompt comes last unless PROMPT stands for it
    endpoint: str
    side_requests: int = 0  # titles and the like


CLIENTS_UNDER_TEST = [
    Client("claude", ["-p", "PROMPT", "--output-format", "json", "--allowedTools", "Read,Edit,Write,Bash"], "messages"),
    Client("codex", ["exec", "--dangerously-bypass-approvals-and-sandbox", "PROMPT"], "responses"),
    Client("opencode", ["run", "--format", "json", "PROMPT"], "chat", 1),
    Client("pi", ["-p", "--mode", "json", "PROMPT"], "chat"),
    Client("qwen", ["-p", "PROMPT", "--approval-mode", "yolo", "-o", "json"], "chat"),
]


@dataclasses.dataclass
class Task:
    """A repository with a file to change, and a command that says what is in it."""

    folder: object

    def __post_init__(self):
        word = lambda: "w" + secrets.token_hex(6)  # noqa: E731
        self.file = self.folder / f"{word()}.txt"
        self.check = self.folder / f"{word()}.sh"
        self.seen = self.folder / f"{word()}.out"
        self.answer = "ANSWER-" + secrets.token_hex(8)
        self.old, self.new = word(), word()
        lines = [word() for _ in range(40)]
        place = secrets.randbelow(39)
        self.file.write_text("\n".join([*lines[:place], self.old, *lines[place:]]) + "\n")
        self.expected = "\n".join([*lines[:place], self.new, *lines[place:]]) + "\n"
        self.check.write_text(f"cat {self.file} > {self.seen}\necho {self.answer}\n")
        self.prompt = (
            f"In {self.file} replace the line {self.old} by {self.new}, run sh {self.check} and tell me what it prints."
        )
        self.commit()

    def commit(self):
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
            subprocess.run([*git, *words], cwd=self.folder, check=True, capture_output=True)


def installed(name):
    folder = CLIENTS / name
    if not (folder / ".installed").exists():
        log = folder / "install.log"
        reason = log.read_text().strip().splitlines()[-1:] if log.exists() else ["npm is missing"]
        pytest.skip(f"{name} is not installed: {' '.join(reason)}")
    return folder / "node_modules/.bin"


def digest(data):
    return hashlib.sha256(data).hexdigest()


def fetch(url, path):
    with urllib.request.urlopen(url + path, timeout=30) as response:
        return response.read().decode()


def start(client, url, task, home):
    path = os.pathsep.join([str(installed(client.name)), str(NODE), "/usr/local/bin", "/usr/bin", "/bin"])
    environment = {
        "HOME": str(home),
        "PATH": path,
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "USER": "user",
        "SHELL": "/bin/bash",
    }
    words = [task.prompt if word == "PROMPT" else word for word in client.arguments]
    command = [BINARY, "agent", client.name, "--url", url, "--folder", str(home / "own"), "--run", "--", *words]
    return subprocess.run(
        command,
        cwd=task.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def requests_of(url):
    listed = json.loads(fetch(url, "/v1/requests"))
    assert listed["active"] == []
    return listed["recent"][::-1]


@pytest.mark.parametrize("client", CLIENTS_UNDER_TEST, ids=lambda client: client.name)
def test_a_client_completes_its_task(client, tmp_path):
    installed("node")
    installed(client.name)
    assert shutil.which("git"), "git is needed"
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    task = Task(tmp_path / "work")
    for url in scripted(ROOT / "tests/clients/task.json", "--context", CONTEXT, "--reasoning-dialect", "think"):
        done = start(client, url, task, tmp_path / "home")
        said = f"\n--- stdout\n{done.stdout[-4000:]}\n--- stderr\n{done.stderr[-4000:]}"
        print(said)
        seen = requests_of(url)
        metrics = fetch(url, "/metrics")
    print(
        "\n".join(
            f"{r['endpoint']} {r['outcome']} {r['finish_reason']} {r['prompt_tokens']} {r['cached_tokens']}"
            for r in seen
        )
    )
    assert done.returncode == 0, said
    assert digest(task.file.read_bytes()) == digest(task.expected.encode()), said
    assert digest(task.seen.read_bytes()) == digest(task.expected.encode()), said
    assert task.answer in done.stdout, said
    assert {request["outcome"] for request in seen} == {"finished"}
    assert {request["endpoint"] for request in seen} == {client.endpoint}
    # Each turn once: three calls and the last words, and what else the client is known to ask.
    assert [request["finish_reason"] for request in seen].count("tool_calls") == 3
    assert len(seen) == 4 + client.side_requests
    assert "tandem_requests_refused_total{" not in metrics
    assert "tandem_broken_calls_total 0" in metrics
