"""`tandem probe`: every check holds on a whole server, and each fails on one that breaks what it is about."""

import http.server
import json
import subprocess
import threading
import urllib.error
import urllib.request

import pytest
from server import BINARY, scripted

SCRIPT = {
    "pace": {"tokens": 1},
    "rules": [
        {"when": {"last": "^Count"}, "say": [{"text": "one ", "times": 60}], "pace": {"step_ms": 20}},
        {
            "when": {"results": 0, "tools": ["get_time"]},
            "say": [{"call": {"name": "get_time", "arguments": {"city": "Oslo"}}}],
        },
        {"when": {"results": 1}, "say": "Half past twelve."},
        {"when": {"last": "colour as JSON"}, "say": '{"colour": "red"}'},
        {"say": [{"think": "France, then."}, {"text": "Paris, I think."}]},
    ],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("probe") / "script.json"
    path.write_text(json.dumps(SCRIPT))
    yield from scripted(path, "--reasoning-dialect", "think", "--context", "600")


def probe(url, *options):
    done = subprocess.run([BINARY, "probe", url, *options], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


def states(url):
    code, text = probe(url, "--json")
    return code, {entry["check"]: entry["state"] for entry in json.loads(text)}


class Broken(http.server.BaseHTTPRequestHandler):
    """Passes requests on to a whole server, and breaks answers by `change(path, status, body)`."""

    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def relay(self, data=None):
        request = urllib.request.Request(self.server.target + self.path, data=data)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                status, kind, body = response.status, response.headers["Content-Type"], response.read()
        except urllib.error.HTTPError as error:
            status, kind, body = error.code, error.headers["Content-Type"], error.read()
        status, text = self.server.change(self.path, status, body.decode())
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        self.relay()

    def do_POST(self):
        self.relay(self.rfile.read(int(self.headers["Content-Length"])))


@pytest.fixture
def broken(whole):
    """A server whose answers are changed on their way."""
    made = []

    def make(change):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken)
        server.target, server.change = whole, change
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield make
    for server in made:
        server.shutdown()
        server.server_close()


def test_a_whole_server_passes(whole):
    code, text = probe(whole)
    assert code == 0, text
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith("failed")]
    code, seen = states(whole)
    assert len(seen) == len(lines)
    assert seen["cancel"] == seen["tools"] == seen["thinking"] == "ok"


def test_no_server_fails():
    code, text = probe("http://127.0.0.1:9")
    assert code == 1
    assert text.startswith("failed   health")


def replaced(where, old, new, streams=None):
    def change(path, status, text):
        is_stream = text.startswith(("data:", "event:", ":"))
        if path.startswith(where) and (streams is None or streams == is_stream):
            text = text.replace(old, new)
        return status, text

    return change


def with_status(where, number):
    return lambda path, status, text: (number if path.startswith(where) else status, text)


BREAKS = {
    "health": with_status("/health", 503),
    "models": replaced("/v1/models", "context_length", "context_size"),
    "unknown model": lambda path, status, text: (200 if status == 404 else status, text),
    "bad field": replaced("/v1/chat", "temperature", "it"),
    "chat": replaced("/v1/chat", '"total_tokens":', '"all_tokens":', streams=False),
    "chat stream": replaced("/v1/chat", "data: [DONE]\n\n", "", streams=True),
    "tools": replaced("/v1/chat", '"name":"get_time"', '"name":"get_date"', streams=False),
    "thinking": replaced("/v1/chat", "Paris, I", "</think>Paris, I"),
    "structured": replaced("/v1/chat", '\\"red\\"', '\\"green\\"', streams=False),
    "responses": replaced("/v1/responses", '"status":"completed"', '"status":"done"', streams=False),
    "responses stream": replaced("/v1/responses", '"sequence_number":1,', '"sequence_number":7,', streams=True),
    "messages": replaced("/v1/messages", '"stop_reason":"end_turn"', '"stop_reason":null', streams=False),
    "messages stream": replaced("/v1/messages", "event: content_block_stop", "event: block_stop", streams=True),
    "count tokens": replaced("/v1/messages/count_tokens", '"input_tokens":', '"input_tokens":1', streams=False),
    "too long": replaced("/v1/chat", "maximum", "most"),
}


@pytest.mark.parametrize("check", BREAKS)
def test_a_check_fails_where_what_it_is_about_is_broken(broken, check):
    code, seen = states(broken(BREAKS[check]))
    assert code == 1
    assert seen[check] == "failed"


def test_a_request_that_goes_on_after_its_client_left_fails(broken):
    # This proxy reads the answer to its end, so that nobody learns that the client has gone.
    def change(path, status, text):
        return status, text.replace('"cancelled"', '"running"').replace('"finished"', '"running"')

    code, seen = states(broken(change))
    assert code == 1
    assert seen["cancel"] == "failed"
