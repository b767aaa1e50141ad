"""Servers as processes: started, found by the URL that they print, ended."""

import contextlib
import os
import pathlib
import queue
import re
import signal
import subprocess
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TANDEM_BIN", str(ROOT / "build/release/bin/tandem"))
START_LIMIT_S = 300
STOP_LIMIT_S = 60
# What these servers keep is not among what the user's keep.
ENVIRONMENT = {**os.environ, "XDG_STATE_HOME": tempfile.mkdtemp(prefix="tandem-state-")}


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
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        yield find_url(process)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=STOP_LIMIT_S)
    assert code == 0, f"the server ended with {code} after SIGTERM"


@contextlib.contextmanager
def killed(words):
    """The URL of a server that gets no time for its end."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        yield find_url(process)
    finally:
        process.kill()
        process.wait()


def script_command(script, *options):
    """A server that plays a script (docs/scripts.md), on the default model's text side unless another is named."""
    return [BINARY, "serve", "--port", "0", "--script", str(script), *options]


def scripted(script, *options):
    return running(script_command(script, *options))
