"""The benchmark's scripts, alone: counting, comparing, writing checkpoints, streaming from a server."""

import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import textwrap

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "peers")]

import checkpoint  # noqa: E402
import counts  # noqa: E402
import servers  # noqa: E402
from spread import Spread  # noqa: E402

PROFILE = """\
version: 1
positions: line
events: Ir
fn=tandem::kernels::matmul(int)
10 100
+11 7
11 20
cfn=malloc
calls=3 40
12 5000
fn=malloc
fi=other.c
40 30
totals: 150
"""


def test_instructions_count_where_they_ran_and_not_again_at_the_call(tmp_path):
    file = tmp_path / "callgrind.out"
    file.write_text(PROFILE)
    assert counts.self_costs(file) == {"kernels": 120, "host": 30}


def test_ceilings_are_recorded_for_each_part():
    assert set(counts.read_ceilings()) == {"kernels", "host"}


def test_a_checkpoint_is_as_long_as_its_header_says_and_written_once(tmp_path):
    out = checkpoint.write("tiny", tmp_path / "tiny")
    data = (out / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    del header["__metadata__"]
    ends = [entry["data_offsets"][1] for entry in header.values()]
    assert len(data) == 8 + length + max(ends)
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert end - begin == math.prod(entry["shape"]) * {"U32": 4, "BF16": 2}[entry["dtype"]], name
    written = (out / "model.safetensors").stat().st_mtime_ns
    checkpoint.write("tiny", out)
    assert (out / "model.safetensors").stat().st_mtime_ns == written


def build(folder, prefill, decode):
    program = folder / "bin" / "tandem"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\necho 'prefill   {prefill} tok/s (1 to 2)'\necho 'decode   {decode} tok/s (1 to 2)'\n"
    )
    program.chmod(0o755)
    return folder


def test_two_builds_are_compared_by_the_ratio_of_new_to_old(tmp_path):
    old, new = build(tmp_path / "old", 100.0, 50.0), build(tmp_path / "new", 150.0, 25.0)
    command = [sys.executable, str(BENCH / "ab.py"), str(old), str(new), "--rounds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "prefill  old 100.0 (100.0 to 100.0) tok/s, new 150.0 (150.0 to 150.0) tok/s, ratio 1.500" in done.stdout
    assert "ratio 0.500 (0.500 to 0.500)" in done.stdout


def test_ratios_are_taken_round_by_round():
    ratio = Spread([2, 30]).ratio_to(Spread([1, 10]))
    assert ratio.values == [2, 3]


def test_an_unknown_row_is_refused_by_name():
    command = [sys.executable, str(BENCH / "peers/run.py"), "decod"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "no row decod" in done.stderr


CMAKE = textwrap.dedent("""\
    #!/bin/sh
    # Stands in for cmake: what it builds crashes unless AMX was left out.
    if [ "$1" = --build ]; then
      echo build >>"$2/../builds"
      printf '#!/bin/sh\\n%s\\n' "$(grep -q mno-amx "$2/asked" && echo true || echo 'kill -ILL $$')" >"$2/bin/llama-bench"
      chmod +x "$2/bin/llama-bench"
    else
      mkdir -p "$4/bin" && echo "$*" >"$4/asked"
    fi
""")


def test_llama_cpp_is_built_again_without_amx_where_it_crashes(tmp_path):
    version = re.search(r"^version=(\S+)", (BENCH / "peers/llama_cpp.sh").read_text(), re.M)[1]
    home = tmp_path / f"tandem/bench/llama.cpp-{version}"
    (home / "source").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cmake").write_text(CMAKE)
    (tmp_path / "bin/cmake").chmod(0o755)
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    command = [str(BENCH / "peers/llama_cpp.sh"), "model.gguf"]
    first, second = (subprocess.run(command, env=env, capture_output=True, text=True, check=True) for _ in range(2))
    assert "once more without AMX" in first.stderr
    assert "mno-amx" in (pathlib.Path(first.stdout.strip()).parent / "asked").read_text()
    assert (second.stdout, second.stderr) == (first.stdout, "")  # remembered
    assert (home / "builds").read_text().split() == ["build", "build"]


SERVER = textwrap.dedent("""
    import http.server, json, sys, time

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            for _ in range(body["max_tokens"]):
                time.sleep(0.06)  # above 0.05, so that a first token may come a little late
                self.say({"choices": [{"text": "x"}]})
            given = int(sys.argv[2]) or body["max_tokens"]
            self.say({"choices": [], "usage": {"prompt_tokens": len(body["prompt"]), "completion_tokens": given}})

        def say(self, chunk):
            self.wfile.write(f"data: {json.dumps(chunk)}\\n\\n".encode())

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
""")


def stand_in(tmp_path, given=0):
    port = servers.free_port()
    return servers.Server([sys.executable, "-c", SERVER, str(port), str(given)], port, tmp_path / "log")


def test_an_answer_knows_its_first_token_and_its_speed(tmp_path):
    server = stand_in(tmp_path)
    try:
        answer = server.complete([5] * 7, 5)
        assert answer.usage == {"prompt_tokens": 7, "completion_tokens": 5}
        assert answer.first >= 0.05
        assert 1 < answer.decode_speed <= 20
        assert server.together([[5], [6]], 3) >= 0.15
        assert server.memory() > 1
    finally:
        server.stop()


def test_a_server_that_stops_early_is_not_measured(tmp_path):
    server = stand_in(tmp_path, given=2)
    try:
        with pytest.raises(SystemExit, match="gave 2 of 5"):
            server.complete([5] * 7, 5)
    finally:
        server.stop()
