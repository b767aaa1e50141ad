"""Each client reads a file, edits it, runs a command and tells what it printed, set up by `tandem agent`. A script plays
the model (task.json), so that what is tested is the wire: what the client sends is understood, what it needs is there, and
it asks nothing twice."""

import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import urllib.request

import pytest
from conftest import ROOT
from server import BINARY, scripted

CLIENTS = ROOT / ".deps/clients"
NODE = CLIENTS / "node/node_modules/node/bin"
LIMIT_S = 600
CONTEXT = "131072"


@dataclasses.dataclass
class Client:
    name: str
    arguments: list  # behind `tandem agent NAME --run --`; PROMPT stands for the prompt
    follow_up: list  # the same, to go on with the last conversation
    endpoint: str
    side_requests: int = 0  # titles and the like
    appends: bool = True  # a later prompt comes behind what there was, unchanged


CLIENTS_UNDER_TEST = [
    Client(
        "claude",
        ["-p", "PROMPT", "--output-format", "json", "--allowedTools", "Read,Edit,Write,Bash"],
        ["-c", "-p", "PROMPT", "--output-format", "json"],
        "messages",
        appends=False,  # the state of the repository stands in its system message
    ),
    Client(
        "codex",
        ["exec", "--dangerously-bypass-approvals-and-sandbox", "PROMPT"],
        ["exec", "--dangerously-bypass-approvals-and-sandbox", "resume", "--last", "PROMPT"],
        "responses",
    ),
    Client(
        "opencode",
        ["run", "--format", "json", "PROMPT"],
        ["run", "-c", "--format", "json", "PROMPT"],
        "chat",
        side_requests=1,
    ),
    Client("pi", ["-p", "--mode", "json", "PROMPT"], ["-c", "-p", "--mode", "json", "PROMPT"], "chat"),
    Client(
        "qwen",
        ["-p", "PROMPT", "--approval-mode", "yolo", "-o", "json"],
        ["-c", "-p", "PROMPT", "--approval-mode", "yolo", "-o", "json"],
        "chat",
        appends=False,  # the folder's content stands in its second message
    ),
]
FOLLOW_UP = "Which answer was that? Say it again."
# The wires that pi can speak, and the endpoint of each.
PI_WIRES = {"openai-completions": "chat", "openai-responses": "responses", "anthropic-messages": "messages"}


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
        # Qwen Code may miss what a command prints right before it ends.
        self.check.write_text(f"cat {self.file} > {self.seen}\necho {self.answer}\nsleep 0.5\n")
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


def environment_of(name, home):
    folders = [str(installed(name)), str(NODE), "/usr/local/bin", "/usr/bin", "/bin"]
    common = {"TERM": "dumb", "LANG": "C.UTF-8", "USER": "user", "SHELL": "/bin/bash"}
    return {"HOME": str(home), "PATH": os.pathsep.join(folders), **common}


def carry_out(command, task, environment):
    done = subprocess.run(
        command,
        cwd=task.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    said = f"\n--- stdout\n{done.stdout[-4000:]}\n--- stderr\n{done.stderr[-4000:]}"
    print(said)
    assert done.returncode == 0, said
    return done.stdout


def start(client, arguments, prompt, url, task, home):
    """What the client printed, set up and started by `tandem agent`."""
    words = [prompt if word == "PROMPT" else word for word in arguments]
    command = [BINARY, "agent", client.name, "--url", url, "--folder", str(home / "own"), "--run", "--", *words]
    return carry_out(command, task, environment_of(client.name, home))


def requests_of(url):
    listed = json.loads(fetch(url, "/v1/requests"))
    assert listed["active"] == []
    # Qwen Code's extraction of memories comes when it comes.
    return [request for request in listed["recent"][::-1] if request.get("side") != "memory"]


def check_reuse(before, after):
    """Nothing that a request's prompt shares with the one before is computed anew."""
    assert after["cached_tokens"] >= before["prompt_tokens"] - 1


def check_task(task, said):
    assert digest(task.file.read_bytes()) == digest(task.expected.encode())
    assert digest(task.seen.read_bytes()) == digest(task.expected.encode())
    assert task.answer in said


def check_requests(seen, endpoint, side_requests):
    """Each turn once: three calls and the last words, and what else the client is known to ask."""
    for request in seen:
        print(
            {name: request[name] for name in ("endpoint", "outcome", "finish_reason", "prompt_tokens", "cached_tokens")}
        )
    assert {request["outcome"] for request in seen} == {"finished"}
    assert {request["endpoint"] for request in seen} == {endpoint}
    assert [request["finish_reason"] for request in seen].count("tool_calls") == 3
    assert len(seen) == 4 + side_requests
    # Titles are short.
    turns = sorted(seen, key=lambda request: request["prompt_tokens"])[side_requests:]
    for before, after in itertools.pairwise(turns):
        check_reuse(before, after)


def check_metrics(url):
    metrics = fetch(url, "/metrics")
    assert "tandem_requests_refused_total{" not in metrics
    assert "tandem_broken_calls_total 0" in metrics


@pytest.fixture
def task(tmp_path):
    assert shutil.which("git"), "git is needed"
    (tmp_path / "work").mkdir()
    return Task(tmp_path / "work")


@pytest.fixture
def home(tmp_path):
    installed("node")
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def server():
    return scripted(ROOT / "tests/clients/task.json", "--context", CONTEXT, "--reasoning-dialect", "think")


@pytest.mark.parametrize("client", CLIENTS_UNDER_TEST, ids=lambda client: client.name)
def test_a_client_completes_its_task_and_goes_on(client, task, home):
    installed(client.name)
    for url in server():
        check_task(task, start(client, client.arguments, task.prompt, url, task, home))
        seen = requests_of(url)
        check_requests(seen, client.endpoint, client.side_requests)
        assert task.answer in start(client, client.follow_up, FOLLOW_UP, url, task, home)
        later = requests_of(url)
        assert len(later) == len(seen) + 1
        if client.appends:
            check_reuse(later[-2], later[-1])
        check_metrics(url)


@pytest.mark.parametrize("wire", PI_WIRES)
def test_pi_over_each_wire(wire, task, home):
    installed("pi")
    for url in server():
        recipe = json.loads(
            subprocess.check_output([BINARY, "agent", "pi", "--url", url, "--json", "--folder", str(home)])
        )
        [file] = recipe["files"]
        content = file["content"].replace("openai-completions", wire)
        if wire == "anthropic-messages":
            content = content.replace(f"{url}/v1", url)
        pathlib.Path(file["path"]).write_text(content)
        environment = {**environment_of("pi", home), **recipe["environment"], "TANDEM_API_KEY": "none"}
        check_task(task, carry_out([*recipe["command"], "-p", "--mode", "json", task.prompt], task, environment))
        check_requests(requests_of(url), PI_WIRES[wire], 0)
        check_metrics(url)
