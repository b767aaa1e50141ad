"""Serving opens no outbound connection: what sockets the server's and the ranks' processes hold, as Linux shows them."""

import contextlib
import json
import os
import pathlib
import re
import sys
import urllib.request

import pytest

ANY_OR_LOOPBACK = {"00000000", "0100007F", "0" * 32, "0" * 24 + "01000000", "0" * 16 + "FFFF00000100007F"}

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or "TANDEM_COMMAND" in os.environ, reason="needs /proc and the real binary"
)


def processes(url):
    """The ranks' pids, and their parent's: the server."""
    with urllib.request.urlopen(f"{url}/v1/status", timeout=30) as response:
        status = json.load(response)
    ranks = [rank["pid"] for instance in status["instances"] for rank in instance["ranks"]]
    stat = pathlib.Path(f"/proc/{ranks[0]}/status").read_text()
    return [int(re.search(r"PPid:\s*(\d+)", stat).group(1)), *ranks]


def peers(pid):
    """The other ends of the process's IP sockets: addresses in hex, by kind of socket."""
    inodes = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            inodes.update(re.findall(r"^socket:\[(\d+)\]$", os.readlink(fd)))
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes:
                yield kind, fields[2].split(":")[0]


def test_no_process_has_a_peer_beyond_this_machine(client, model, url):
    pids = processes(url)
    with client.completions.create(model=model, prompt="Hello", max_tokens=64, stream=True) as stream:
        next(iter(stream))
        held = [peer for pid in pids for peer in peers(pid)]
    assert ("tcp", "0100007F") in held, "not even the client's connection was found"
    assert [peer for peer in held if peer[1] not in ANY_OR_LOOPBACK or "udp" in peer[0]] == []
