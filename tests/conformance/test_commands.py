"""The commands that need no server: what they print, what they write, how they refuse."""

import array
import http.server
import json
import os
import pathlib
import platform
import socket
import struct
import subprocess
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TANDEM_BIN", str(ROOT / "build/release/bin/tandem"))
TOKENS = [1, 520, 9531, 198, 504, 3575, 282, 4649, 314, 260] * 7

pytestmark = pytest.mark.skipif("TANDEM_COMMAND" in os.environ, reason="another program is under test")


def run(*arguments, code=0):
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


def logits(tmp_path, name, *arguments):
    """(shape, values) of the written file."""
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps(TOKENS))
    out = tmp_path / name
    run("logits", "--tokens", str(tokens), "--out", str(out), *arguments)
    data = out.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8 : 8 + length])["logits"]
    values = array.array("f")
    values.frombytes(data[8 + length :])
    return entry["shape"], values


def test_generate_prints_only_the_text():
    done = run(
        "generate", "--prompt", "What is the capital of France?", "--max-tokens", "16", "--rank-log", "/dev/null"
    )
    assert done.stdout == "The capital of France is Paris.\n"


def test_logits_do_not_depend_on_chunks(tmp_path):
    shape, whole = logits(tmp_path, "whole.safetensors")
    assert shape[0] == len(TOKENS)
    assert len(whole) == shape[0] * shape[1]
    _, chunked = logits(tmp_path, "chunked.safetensors", "--chunk", "32")
    assert chunked == whole


def test_logits_refuses_what_it_would_ignore(tmp_path):
    tokens = tmp_path / "tokens.json"
    tokens.write_text("[1]")
    for option in ("--context", "--memory", "--comm", "--rank-log"):
        arguments = ("--tokens", str(tokens), "--out", str(tmp_path / "out"), option, "1")
        done = subprocess.run([BINARY, "logits", *arguments], capture_output=True, text=True)
        assert done.returncode != 0 and option in done.stderr + done.stdout


def test_logits_checks_shares_before_it_loads(tmp_path):
    tokens = tmp_path / "tokens.json"
    tokens.write_text("[1]")
    arguments = ("--tokens", str(tokens), "--out", str(tmp_path / "out"), "--ranks", "2", "--shares", "0,0")
    assert "at least one rank" in run("logits", *arguments, code=1).stderr


@pytest.mark.parametrize("split", ["tensor", "pipeline", "auto"])
def test_logits_over_ranks_agree(tmp_path, split):
    _, alone = logits(tmp_path, "alone.safetensors")
    _, shared = logits(tmp_path, "shared.safetensors", "--ranks", "3", "--split", split)
    # Logits reach 34. Where sums are rounded differently, keys and values in float16 and row codes of 16 bits are too.
    assert max(abs(a - b) for a, b in zip(alone, shared, strict=True)) < 0.1


def test_cpu_levels_are_masked_and_checked(tmp_path):
    _, best = logits(tmp_path, "best.safetensors")
    _, portable = logits(tmp_path, "portable.safetensors", "--cpu-level", "portable")
    assert portable != best
    assert max(abs(a - b) for a, b in zip(best, portable, strict=True)) < 0.1
    tokens = tmp_path / "tokens.json"
    tokens.write_text("[1]")
    other = "neon" if platform.machine() == "x86_64" else "amx"
    arguments = ("--tokens", str(tokens), "--out", str(tmp_path / "out"), "--cpu-level", other)
    assert f"this machine does not run --cpu-level {other}" in run("logits", *arguments, code=5).stderr


def test_a_missing_model_is_named(tmp_path):
    done = run("generate", str(tmp_path / "nothing"), "--prompt", "x", code=1)
    assert "nothing" in done.stderr and "expected a folder" in done.stderr


def test_an_open_bind_without_a_key_is_refused():
    done = run("serve", "--host", "0.0.0.0", "--port", "0", "--rank-log", "/dev/null", code=1)
    assert "key" in done.stderr


def test_shares_that_do_not_fit_the_ranks_are_refused():
    done = run("generate", "--ranks", "2", "--shares", "1,2,3", "--prompt", "x", code=1)
    assert "3 parts for 2 ranks" in done.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--shares", "0,0", "--ranks", "2"), "at least one rank"),
        (("--shares=-1,2", "--ranks", "2"), "numbers from 0 to 1e9, not -1"),
        (("--shares", "nan,1", "--ranks", "2"), "numbers from 0 to 1e9, not nan"),
        (("--shares", "inf,1", "--ranks", "2"), "numbers from 0 to 1e9, not inf"),
        (("--memory", "nan"), "--memory must be"),
        (("--memory=-1",), "--memory must be"),
        (("--memory", "1e30"), "--memory must be at most"),
    ],
)
def test_sizes_that_are_no_sizes_are_refused_before_a_rank_starts(arguments, words):
    done = run("generate", "--prompt", "x", *arguments, code=1)
    assert words in done.stderr
    assert "rank 0" not in done.stderr


@pytest.mark.parametrize(
    "command, option, value",
    [
        ("generate", "--temp", "-1"),
        ("generate", "--temp", "nan"),
        ("generate", "--top-p", "5"),
        ("generate", "--top-p", "nan"),
        ("generate", "--max-tokens", "0"),
        ("chat", "--temp", "101"),
        ("chat", "--max-tokens", "0"),
    ],
)
def test_sampling_out_of_range_is_refused_before_a_model_is_loaded(command, option, value):
    prompt = ["--prompt", "x"] if command == "generate" else []
    done = subprocess.run([BINARY, command, *prompt, f"{option}={value}"], capture_output=True, text=True, timeout=10)
    assert done.returncode != 0
    said = done.stderr + done.stdout
    assert option in said and "must be from" in said and "rank 0" not in said


def test_absurd_thread_counts_are_refused():
    done = subprocess.run([BINARY, "generate", "--prompt", "x", "--threads", "1025"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "--threads" in done.stderr + done.stdout


def test_a_busy_port_is_found_before_a_model_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", "--port", str(taken.getsockname()[1]), code=1)
    assert "cannot listen" in done.stderr
    assert "rank 0" not in done.stderr


def test_a_key_file_that_cannot_be_used_is_named(tmp_path):
    assert "cannot read" in run("serve", "--api-key-file", str(tmp_path / "none"), code=1).stderr
    empty = tmp_path / "empty"
    empty.write_text(" \r\n\n")
    assert "holds no key" in run("serve", "--api-key-file", str(empty), code=1).stderr


def test_a_key_file_may_have_the_line_ends_of_windows_and_spaces(tmp_path):
    seen = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers["Authorization"])
            self.send_error(404)

        def log_message(self, *_):
            pass

    keys = tmp_path / "keys"
    keys.write_bytes(b"\r\n  a-key \r\nanother\r\n")
    with http.server.HTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        run("status", "--url", f"http://127.0.0.1:{server.server_port}", "--api-key-file", str(keys), code=1)
    assert seen == ["Bearer a-key"]


def serve_once(body, kind="application/json"):
    """A server that is alive and answers everything else with `body`."""

    class Hostile(http.server.BaseHTTPRequestHandler):
        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_probe = self.path == "/health/live"
            sent = b"{}" if is_probe else body
            self.send_response(200 if is_probe or kind == "text/event-stream" else 500)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def talk(server, said=b"hi\n"):
    done = subprocess.run(
        [BINARY, "chat", "--url", f"http://127.0.0.1:{server.server_port}"], input=said, capture_output=True, timeout=60
    )
    server.shutdown()
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "chunk",
    [
        "7",
        "[]",
        '{"choices": 1}',
        '{"choices": {"delta": 1}}',
        '{"choices": [{}]}',
        '{"choices": [[]]}',
        '{"choices": [{"delta": null}]}',
        '{"choices": [{"delta": {"content": 5}}]}',
        '{"error": "text"}',
        '{"error": {"message": 5}}',
        '{"error": []}',
        "[" * 10000,
    ],
)
def test_a_stream_of_any_shape_is_no_crash(chunk):
    code, out, err = talk(serve_once(f"data: {chunk}\n\ndata: [DONE]\n\n".encode(), "text/event-stream"))
    assert code == 0, err
    assert b"json.exception" not in out + err
    assert (b"tandem chat:" in err) == ("error" in chunk)


def test_a_line_that_is_not_utf8_is_sent_all_the_same():
    stream = b'data: {"choices": [{"delta": {"content": "fine"}}]}\n\ndata: [DONE]\n\n'
    code, out, err = talk(serve_once(stream, "text/event-stream"), b"\xff\xfe\n")
    assert code == 0, err
    assert b"fine" in out


@pytest.mark.parametrize(
    "body, words",
    [
        ("<html>", "status 500"),
        ("[]", "status 500"),
        ('{"error": {"message": 5}}', "status 500"),
        ('{"error": "text"}', "status 500"),
        ('{"error": {"message": "broken here"}}', "broken here"),
    ],
)
def test_an_error_of_any_shape_is_one_line(body, words):
    server = serve_once(body.encode())
    done = run("status", "--url", f"http://127.0.0.1:{server.server_port}", code=1)
    (line,) = done.stderr.splitlines()
    assert line.startswith("tandem status: ") and words in line
    code, _, err = talk(server)
    assert code == 0 and words.encode() in err


def test_a_model_that_cannot_be_loaded_is_refused_at_once_with_the_reason(tmp_path):
    done = run("generate", "--prompt", "x", "--memory", "0.01", code=1)
    (reason,) = [line for line in done.stderr.splitlines() if line.startswith("tandem generate:")]
    assert "the limit is 10 MB" in reason and "exited with code" not in reason
    assert done.stderr.count("cannot load") == 1


def test_what_only_the_rank_can_see_is_refused_at_once_with_the_reason():
    level = "neon" if platform.machine() == "x86_64" else "avx2"
    done = run("generate", "--prompt", "x", "--cpu-level", level, "--ranks", "2", code=1)
    (reason,) = [line for line in done.stderr.splitlines() if line.startswith("tandem generate:")]
    assert f"this machine does not run --cpu-level {level}: choose auto" in reason
    assert done.stderr.count("cannot load") <= 2  # once a rank: nothing is tried again


def test_an_answer_that_cannot_be_written_is_no_success():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [BINARY, "generate", "--prompt", "x", "--max-tokens", "2", "--rank-log", "/dev/null"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=120,
        )
    assert done.returncode == 1
    assert b"could not be written" in done.stderr


@pytest.mark.parametrize("ids", ["[]", "[-1]", "[4294967297]", "[99999999999]", '["1"]', "[49152]"])
def test_logits_of_what_are_no_token_ids_are_refused_and_touch_no_file(tmp_path, ids):
    tokens = tmp_path / "tokens.json"
    tokens.write_text(ids)
    out = tmp_path / "out.safetensors"
    run("logits", "--tokens", str(tokens), "--out", str(out), code=5)
    assert list(tmp_path.iterdir()) == [tokens]
    out.write_text("of an earlier run")
    run("logits", "--tokens", str(tokens), "--out", str(out), code=5)
    assert out.read_text() == "of an earlier run"


def test_a_pipe_is_no_model(tmp_path):
    pipe = tmp_path / "model.gguf"
    os.mkfifo(pipe)
    assert "neither a folder nor a regular file" in run("serve", "--port", "0", str(pipe), code=1).stderr


@pytest.mark.parametrize("body", ["{}", '{"model": 1, "instances": []}', "<html>", ""])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_status_of_another_server_is_an_error(body, form):
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = run("status", "--url", f"http://127.0.0.1:{server.server_port}", *form, code=1)
        server.shutdown()
    assert "is it a tandem server?" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["--comm", "ring"], "--ranks 2"),
        (["--comm", "ring", "--ranks", "2", "--split", "pipeline"], "tensor split only"),
        (["--comm", "jaccl", "--ranks", "2"], "--jaccl-devices"),
        (["--comm", "tcp", "--ranks", "2", "--jaccl-ring"], "--jaccl-ring"),
        (["--comm", "nccl", "--ranks", "2", "--device", "cpu"], "--device cpu"),
        (["--comm", "ring", "--ranks", "2", "--deterministic"], "leave out --deterministic"),
        (["--path", "plain", "--deterministic"], "leave out --path plain"),
    ],
)
def test_what_options_cannot_do_together_is_refused_before_a_rank_starts(arguments, reason):
    done = run("generate", "--prompt", "x", *arguments, code=1)
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


def test_a_backend_that_this_machine_lacks_is_one_error_at_start(tmp_path):
    log = tmp_path / "ranks.log"
    (tmp_path / "devices.json").write_text("[[null, null], [null, null]]")
    asked = ["--comm", "jaccl", "--jaccl-devices", str(tmp_path / "devices.json")]
    done = run("generate", "--prompt", "x", "--ranks", "2", *asked, "--rank-log", str(log), code=1)
    assert "jaccl is not available" in done.stderr.splitlines()[-1]
    assert log.read_text().count("cannot load") <= 2  # once a rank: nothing is tried again


def test_ranks_that_meet_over_the_ring_of_mlx_answer():
    asked = ["--ranks", "2", "--comm", "ring", "--rank-log", "/dev/null"]
    done = run("generate", "--prompt", "What is the capital of France?", "--max-tokens", "16", *asked)
    assert done.stdout == "The capital of France is Paris.\n"


def test_a_model_too_small_to_gain_from_two_ranks_runs_on_one():
    asked = ["--ranks", "2", "--prompt-tokens", "8", "--generate-tokens", "2", "--repeats", "1"]
    done = run("bench", *asked)
    assert "split auto: one rank alone, because with " in done.stderr
    assert ", 1 ranks" in done.stderr
    assert ", 1 rank, " in done.stdout
    done = run("bench", *asked, "--split", "tensor")
    assert ", 2 ranks, " in done.stdout


@pytest.mark.parametrize(
    "words, told",
    [
        (["sevre"], "tandem: there is no command 'sevre' (tandem --help lists them)"),
        (["serve", "--prot", "1"], "tandem serve: "),
        (["serve", "--port", "99999"], "--port: must be from 0 to 65535, not 99999"),
        # The word behind a list is the model, and not one more of the list.
        (["serve", "--alias", "a,b", "/nowhere/m"], "/nowhere/m"),
        (["serve", "--guards", "none", "/nowhere/m"], "/nowhere/m"),
        (["serve", "--allowed-origins", "http://a", "/nowhere/m"], "/nowhere/m"),
        (["serve", "--shares", "2,1", "/nowhere/m"], "/nowhere/m"),
        (["serve", "--host", "0.0.0.0", "--port", "0"], "give --api-key-file FILE, or --insecure-no-key"),
        (["generate", "--prompt", "x", "/usr/lib"], "there is no model in /usr/lib: expected a config.json"),
        (["probe", "http://127.0.0.1:9"], "cannot connect: Connection refused"),
        (["status", "--url", "http://127.0.0.1:9"], "no server answers at http://127.0.0.1:9: cannot connect"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_told(words, told):
    done = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert told in done.stdout + done.stderr
