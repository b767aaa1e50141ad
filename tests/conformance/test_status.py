"""What the real binary says of its engine and ranks: /metrics, /v1/status and `tandem status`."""

import json
import os
import pathlib
import re
import subprocess
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TANDEM_BIN", str(ROOT / "build/release/bin/tandem"))
REPORT_LIMIT_S = 30  # ranks report every second

pytestmark = pytest.mark.skipif("TANDEM_COMMAND" in os.environ, reason="another program is under test")


def metrics(url):
    """{name: summed value of its samples}, {name: kind}."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as response:
        text = response.read().decode()
    values, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split(" ")
            assert name not in kinds, f"two families are named {name}"
            kinds[name] = kind
        elif not line.startswith("#"):
            name, value = re.fullmatch(r"([a-z0-9_]+)(?:\{.*\})? (\S+)", line).groups()
            values[name] = values.get(name, 0) + float(value)
    return values, kinds


def wait_for(read, holds):
    deadline = time.monotonic() + REPORT_LIMIT_S
    while not holds(value := read()):
        assert time.monotonic() < deadline, value
        time.sleep(0.1)
    return value


def complete(client, model, prompt):
    return client.completions.create(
        model=model, prompt=prompt, max_tokens=8, temperature=0, extra_body={"ignore_eos": True}
    )


def test_a_request_moves_the_engine_figures(client, model, url):
    prompt = [7, 11, 13, 17] * 24  # nobody else's
    before, kinds = metrics(url)
    complete(client, model, prompt)
    usage = complete(client, model, prompt).usage
    assert usage.prompt_tokens_details.cached_tokens > 0
    expected = {
        "tandem_engine_generated_tokens_total": 16,
        "tandem_engine_prompt_tokens_total": 2 * len(prompt),
        "tandem_prefix_cache_hit_tokens_total": usage.prompt_tokens_details.cached_tokens,
        "tandem_engine_computed_positions_total": len(prompt),
        "tandem_engine_steps_total": 16,
        "tandem_engine_step_rows_total": 16,
        "tandem_engine_step_seconds_count": 16,
        "tandem_inter_token_seconds_count": 14,
    }

    def moved(now):
        return all(now[name] - before[name] >= least for name, least in expected.items())

    after = wait_for(lambda: metrics(url)[0], moved)
    assert after["tandem_instance_ready"] == 1
    assert after["tandem_rank_up"] == after["tandem_rank_starts_total"] == 1
    assert after["tandem_rank_deaths_total"] == after["tandem_lost_epochs_total"] == 0
    assert after["tandem_kv_pages"] > 0
    for name, kind in kinds.items():
        assert (kind == "counter") == name.endswith("_total"), name


def status(url, *arguments):
    done = subprocess.run([BINARY, "status", "--url", url, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def resident_bytes(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_status_says_what_each_rank_holds(client, model, url):
    complete(client, model, "Hello")

    def read():
        return json.loads(status(url, "--json"))

    said = wait_for(read, lambda s: s["instances"][0]["ranks"][0]["memory"]["weight_bytes"] > 0)
    assert said["model"] == model
    [instance] = said["instances"]
    assert instance["state"] == "ready" and instance["epoch"] == 1 and instance["lost_epochs"] == 0
    assert instance["split"] in ("tensor", "pipeline") and instance["split_reason"]
    [rank] = instance["ranks"]
    assert rank["rank"] == 0 and rank["state"] == "ready"
    memory = rank["memory"]
    really = resident_bytes(rank["pid"])  # of a process that lives, with that pid
    assert abs(memory["resident_bytes"] - really) < 0.2 * really
    assert 0 < memory["weight_bytes"] < really < memory["device_bytes"]
    assert memory["cache_bytes"] > 0
    pages = instance["engine"]["pages"]
    assert pages["used"] + pages["cached"] + pages["free"] > 0 and pages["tokens"] > 0


def test_the_fingerprint_names_versions_and_platform_and_no_device(client, model):
    fingerprint = complete(client, model, "Hello").system_fingerprint
    assert re.fullmatch(r"tandem-[\d.]+-mlx-[\d.]+-[a-z]+-(x86_64|aarch64|arm64)", fingerprint)


def test_status_has_both_spellings(url):
    for path in ("/status", "/v1/status"):
        with urllib.request.urlopen(url + path, timeout=30) as response:
            assert json.load(response)["instances"]


def test_status_is_readable(client, model, url):
    text = wait_for(lambda: status(url), lambda text: "requests running: 0" in text)
    [rank] = json.loads(status(url, "--json"))["instances"][0]["ranks"]
    assert f"serves {model}" in text
    assert f"rank 0: ready, pid {rank['pid']}" in text
    assert "MiB resident" in text
