"""Puts the same requests to tandem and to mlx-lm's server, both with a model that says what it is told to, and prints each
difference with its explanation. Exit status 1 when one has none, or an explanation has no difference any more."""

import argparse
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from cases import CASES, FIELDS

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_LIMIT_S = 120
# Both find what to say in the prompt: a server with mlx-lm's scripted model does so by itself.
SCRIPT = {
    "find": {"user": r"[\s\S]*SCRIPT<<(?<said>[\s\S]*?)<<END"},
    "rules": [{"say": "${said}"}],
}
TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
    'Calls: <tool_call>{"name": tool_call.name, "arguments": {}}</tool_call><|im_end|>\n{% endif -%}'
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor -%}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_model(folder):
    """A model's text side: the tokenizer of the unit tests, a template with tools."""
    shutil.copy(ROOT / "src/text/testdata/byte_level.json", folder / "tokenizer.json")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    size = 1 + max(max(ids.values()), *tokenizer["model"]["vocab"].values())
    config = {"model_type": "scripted", "vocab_size": size, "eos_token_id": ids["<|im_end|>"]}
    (folder / "config.json").write_text(json.dumps(config))
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|pad|>"}
    names |= {"clean_up_tokenization_spaces": False, "model_max_length": 4096, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "script.json").write_text(json.dumps(SCRIPT))


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


class Server:
    def __init__(self, name, words, port, log):
        self.name, self.url = name, f"http://127.0.0.1:{port}"
        self.log = log
        self.process = subprocess.Popen(words, stdout=log.open("w"), stderr=subprocess.STDOUT)
        end = time.monotonic() + START_LIMIT_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{name} did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)

    def answers(self):
        try:
            return urllib.request.urlopen(self.url + "/v1/models", timeout=5).status == 200
        except OSError:
            return False

    def post(self, path, body):
        """(status, text)."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)


def body_of(case, stream):
    text = f"SCRIPT<<{case.says}<<END"
    body = {"max_tokens": 300, "temperature": 0, **case.fields}
    whole = {"prompt": f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"}
    body |= whole if case.prompt else {"messages": [{"role": "user", "content": text}]}
    if case.tools:
        body["tools"] = case.tools
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def keys_of(value, place=""):
    """Places of all fields of an answer, lists without their index."""
    if isinstance(value, list):
        return {key for each in value for key in keys_of(each, place + "[]")}
    if not isinstance(value, dict):
        return {place}
    return {key for name, each in value.items() for key in keys_of(each, f"{place}.{name}" if place else name)}


def joined(chunks):
    """A stream's choice as a whole answer's."""
    message, choice = {"role": "assistant"}, {"index": 0, "message": None, "finish_reason": None, "text": ""}
    for chunk in chunks:
        for part in chunk["choices"]:
            choice["finish_reason"] = part.get("finish_reason") or choice["finish_reason"]
            choice["text"] += part.get("text") or ""
            for name, value in (part.get("delta") or {}).items():
                if name == "tool_calls":
                    for call in value:
                        calls = message.setdefault(name, [])
                        if call["index"] == len(calls):
                            calls.append({"function": {"name": "", "arguments": ""}})
                        for key in ("name", "arguments"):
                            calls[call["index"]]["function"][key] += call["function"].get(key) or ""
                elif isinstance(value, str) and name != "role":
                    message[name] = message.get(name, "") + value
    choice["message"] = message
    return choice


def facts_of(status, text, stream):
    """What is compared: name to value. And the answer's fields."""
    if status != 200:
        return {"status": status}, set()
    if stream:
        events = [block[6:] for block in text.split("\n\n") if block.startswith("data: ")]
        chunks = [json.loads(event) for event in events if event != "[DONE]"]
        choice, usage = joined(chunks), chunks[-1].get("usage") or {}
        fields = {key for chunk in chunks for key in keys_of(chunk)}
        ends = {"done": events[-1] == "[DONE]"}
    else:
        answer = json.loads(text)
        choice, usage = answer["choices"][0], answer["usage"]
        fields, ends = keys_of(answer), {}
    message = choice.get("message") or {}
    calls = [call["function"] for call in message.get("tool_calls") or []]
    return {
        "status": status,
        "text": (choice.get("text") or "") + (message.get("content") or ""),
        "thinking": message.get("reasoning") or "",
        "calls": [(call["name"], json.loads(call["arguments"])) for call in calls],
        "finish_reason": choice["finish_reason"],
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        **ends,
    }, fields


class Report:
    def __init__(self):
        self.bad = 0

    def difference(self, where, ours, theirs, reason):
        self.bad += reason is None
        print(f"{'explained' if reason else 'UNEXPLAINED'}: {where}: tandem {ours!r}, mlx-lm {theirs!r}")
        print(f"    {reason or 'nobody said why'}")

    def stale(self, where, reason):
        self.bad += 1
        print(f"NO DIFFERENCE: {where}, though it is explained: {reason}")


def compare(case, stream, servers, report, fields):
    path = "/v1/completions" if case.prompt else "/v1/chat/completions"
    seen = []
    for server in servers:
        facts, keys = facts_of(*server.post(path, body_of(case, stream)), stream)
        fields[server.name] |= {f"{'stream' if stream else 'whole'} {key}" for key in keys}
        seen.append(facts)
    ours, theirs = seen
    kind = "stream" if stream else "whole"
    for name in {**ours, **theirs}:
        key = f"{name}, {kind}" if f"{name}, {kind}" in case.differs else name
        reason = case.differs.get(key)
        if ours.get(name) != theirs.get(name):
            report.difference(f"{case.name} ({kind}), {name}", ours.get(name), theirs.get(name), reason)
        elif reason is not None:
            report.stale(f"{case.name} ({kind}), {name}", reason)


def compare_fields(fields, report):
    only = {"ours": fields["tandem"] - fields["mlx-lm"], "theirs": fields["mlx-lm"] - fields["tandem"]}
    for side, keys in only.items():
        for key in sorted(keys):
            there = ("yes", "no") if side == "ours" else ("no", "yes")
            report.difference(f"field {key}", *there, FIELDS[side].get(key))
        for key in FIELDS[side]:
            if key not in keys:
                report.stale(f"field {key}", FIELDS[side][key])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tandem", default=str(ROOT / "build/release/bin/tandem"))
    parser.add_argument("--python", default=sys.executable, help="one that has mlx-lm")
    options = parser.parse_args()
    report, fields = Report(), {"tandem": set(), "mlx-lm": set()}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model"
        model.mkdir()
        make_model(model)
        ports = free_port(), free_port()
        ours = [options.tandem, "serve", str(model), "--script", str(model / "script.json"), "--port", str(ports[0])]
        theirs = [
            options.python,
            str(ROOT / "tests/reference/mlx_lm_server.py"),
            "--dir",
            str(model),
            "--port",
            str(ports[1]),
        ]
        servers = [
            Server("tandem", ours, ports[0], folder / "ours.log"),
            Server("mlx-lm", theirs, ports[1], folder / "theirs.log"),
        ]
        try:
            for case in CASES:
                for stream in (False, True):
                    compare(case, stream, servers, report, fields)
            compare_fields(fields, report)
        finally:
            for server in servers:
                server.stop()
    print(
        f"{len(CASES)} cases, whole and streamed: {report.bad} without explanation"
        if report.bad
        else "all differences are explained"
    )
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
