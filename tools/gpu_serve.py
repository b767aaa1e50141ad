#!/usr/bin/env python3
"""Serves a model and checks answers that must have a form beside plain ones, and embeddings: gpu_serve.py TANDEM MODEL DEVICE.

Standard library only, for machines that have nothing else. Ends with 0 when all is as it should be.
"""

import concurrent.futures
import json
import math
import re
import subprocess
import sys
import time
import urllib.request

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "size": {"enum": ["small", "large"]},
        "people": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["city", "size", "people"],
    "additionalProperties": False,
}


def ask(url: str, path: str, body: dict) -> dict:
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def chat(url: str, i: int, form: dict | None) -> str:
    messages = [{"role": "user", "content": f"Tell me about town number {i}."}]
    body = {"messages": messages, "temperature": 1.5, "seed": i, "max_tokens": 96, **(form or {"temperature": 0})}
    choice = ask(url, "/v1/chat/completions", body)["choices"][0]
    if form and choice["finish_reason"] != "stop":
        raise AssertionError(f"an answer with a form ended with {choice['finish_reason']}: {choice['message']}")
    return choice["message"]["content"]


def check_forms(url: str) -> None:
    form = {"response_format": {"type": "json_schema", "json_schema": {"name": "town", "schema": SCHEMA}}}
    alone = [chat(url, i, None) for i in range(4)]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        bound = [pool.submit(chat, url, i, form) for i in range(6)]
        chosen = [pool.submit(chat, url, i, {"guided_regex": "[a-c]{4}"}) for i in range(2)]
        plain = [pool.submit(chat, url, i, None) for i in range(4)]
        for answer in bound:
            town = json.loads(answer.result())
            assert set(town) == set(SCHEMA["required"]), town
            assert town["size"] in ("small", "large") and town["people"] in range(100), town
        for answer in chosen:
            assert re.fullmatch("[a-c]{4}", answer.result()), answer.result()
        same = sum(a == b.result() for a, b in zip(alone, plain, strict=True))
    # A device without equal bits across batches may round a choice differently.
    print(f"forms: 8 of 8 as asked; plain answers equal beside them: {same} of 4")


def check_embeddings(url: str) -> None:
    texts = ["a cat sat", "a cat sat down", "interest rates of the central bank"]
    vectors = [each["embedding"] for each in ask(url, "/v1/embeddings", {"input": texts})["data"]]
    assert all(abs(math.hypot(*v) - 1) < 1e-3 for v in vectors)
    near, far = (sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors[1:])
    print(f"embeddings: alike {near:.3f}, unlike {far:.3f}")
    assert near > far


def main() -> None:
    tandem, model, device = sys.argv[1:]
    command = [tandem, "serve", model, "--device", device, "--port", "0", "--no-state", "--rank-log", "serve.log"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.]+:\d+", line)))
        for _ in range(600):
            try:
                urllib.request.urlopen(url + "/health/ready", timeout=5)
                break
            except OSError:
                time.sleep(0.2)
        check_forms(url)
        check_embeddings(url)
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
