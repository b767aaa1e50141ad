"""`tandem agent`: what it prints is true of the server, runs as it is printed, and holds no key."""

import json
import stat
import subprocess
import tomllib

import pytest
from server import BINARY, ROOT, scripted

CLIENTS = [
    line[2:-1] for line in (ROOT / "src/app/agents/registry.inc").read_text().splitlines() if line.startswith("X(")
]
KEY = "sk-not-to-be-seen"
# What a client is started with, told by a program of its name.
SPY = """#!/bin/sh
for word in "$@"; do echo "word $word"; done
env | sed 's/^/env /'
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("agent") / "script.json"
    path.write_text(json.dumps({"rules": [{"say": "Hello."}]}))
    return path


@pytest.fixture(scope="module")
def url(script):
    yield from scripted(script, "--context", "65536")


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text(KEY + "\n")
    return path


@pytest.fixture(scope="module")
def closed_url(script, key_file):
    yield from scripted(script, "--api-key-file", str(key_file))


def agent(*arguments, home="/nowhere", code=0, **environment):
    done = subprocess.run(
        [BINARY, "agent", *arguments],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    return done


def spies(folder):
    """Programs of the clients' names, which tell how they were started."""
    folder.mkdir()
    for name in [*CLIENTS, "open-webui"]:
        path = folder / name
        path.write_text(SPY)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


def lines_of(text, kind):
    return [line[len(kind) + 1 :] for line in text.splitlines() if line.startswith(kind + " ")]


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_printed_is_true_of_the_server(url, client, tmp_path):
    told = json.loads(agent(client, "--url", f"{url}/v1/", "--json", "--folder", str(tmp_path / "own")).stdout)
    assert told["server"]["url"] == url
    assert told["server"]["context"] == 65536
    assert told["server"]["needs_key"] is False
    everything = json.dumps(told)
    assert told["server"]["model"] in everything.replace(json.dumps(told["server"]), "")
    assert not (tmp_path / "own").exists(), "printing writes nothing"


@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "xcode"])
def test_the_printed_script_and_run_start_the_same(url, client, tmp_path):
    path = f"{spies(tmp_path / 'bin')}:/usr/bin:/bin"
    own = tmp_path / "it's own"
    words = (client, "--url", url, "--folder", str(own))
    printed = agent(*words, home=tmp_path).stdout
    by_script = subprocess.run(
        ["sh", "-c", printed], env={"HOME": str(tmp_path), "PATH": path}, capture_output=True, text=True, check=True
    ).stdout
    written = {file: file.read_text() for file in own.iterdir()} if own.exists() else {}
    by_run = agent(*words, "--run", "--", "-p", "say 'hi'", home=tmp_path, PATH=path).stdout
    assert lines_of(by_run, "word") == [*lines_of(by_script, "word"), "-p", "say 'hi'"]
    inherited = ("env PWD=", "env OLDPWD=", "env SHLVL=", "env _=")
    by_kind = [
        {line for line in text.splitlines() if line.startswith("env ") and not line.startswith(inherited)}
        for text in (by_script, by_run)
    ]
    assert by_kind[0] == by_kind[1]
    assert {file: file.read_text() for file in own.iterdir()} == written


def test_configurations_are_of_their_kind(url, tmp_path):
    def files(client):
        return json.loads(agent(client, "--url", url, "--json", "--folder", str(tmp_path)).stdout)["files"]

    [codex] = files("codex")
    assert tomllib.loads(codex["content"])["model_providers"]["tandem"]["base_url"] == f"{url}/v1"
    for client in ("opencode", "pi", "qwen"):
        [file] = files(client)
        assert "65536" in json.dumps(json.loads(file["content"]))


@pytest.mark.parametrize("client", CLIENTS)
def test_no_key_is_printed_or_written(closed_url, key_file, client, tmp_path):
    words = (client, "--url", closed_url, "--api-key-file", str(key_file), "--folder", str(tmp_path / "own"))
    for form in ((), ("--json",)):
        assert KEY not in agent(*words, *form).stdout
    path = f"{spies(tmp_path / 'bin')}:/usr/bin:/bin"
    if client == "xcode":
        return
    assert f"env TANDEM_API_KEY={KEY}" in agent(*words, "--run", home=tmp_path, PATH=path).stdout
    files = [file for file in (tmp_path / "own").rglob("*") if file.is_file()]
    assert all(KEY not in file.read_text() for file in files)


def test_a_key_comes_from_the_environment_too(closed_url):
    assert "TANDEM_API_KEY" in agent("codex", "--url", closed_url, TANDEM_API_KEY=KEY).stdout
    assert "asks for a key" in agent("codex", "--url", closed_url, code=1).stderr


def test_a_written_configuration_is_never_overwritten(url, tmp_path):
    agent("codex", "--url", url, "--write", home=tmp_path)
    path = tmp_path / ".codex/config.toml"
    assert tomllib.loads(path.read_text())["model_provider"] == "tandem"
    agent("codex", "--url", url, "--write", home=tmp_path)
    path.write_text("mine = 1\n")
    assert "left as it is" in agent("codex", "--url", url, "--write", home=tmp_path, code=1).stderr
    assert path.read_text() == "mine = 1\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["claude", "--url", "http://127.0.0.1:9"], "no server answers at http://127.0.0.1:9"),
        (["claude", "--url", "URL", "--write"], "has no file to write"),
        (["xcode", "--url", "URL", "--run"], "not started from a command line"),
        (["claude", "--url", "URL", "--", "-p"], "with --run only"),
        (["claude", "--url", "URL", "--run"], "install it with: npm install -g @anthropic-ai/claude-code"),
    ],
)
def test_what_cannot_be_is_said(url, arguments, words, tmp_path):
    arguments = [url if word == "URL" else word for word in arguments]
    if "--run" in arguments:
        arguments += ["--folder", str(tmp_path)]
    assert words in agent(*arguments, code=1, home=tmp_path).stderr


def test_an_unknown_client_is_refused_with_the_known(url):
    done = subprocess.run([BINARY, "agent", "emacs"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "claude" in done.stderr + done.stdout
