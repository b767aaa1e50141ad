"""Prompts around the context's end, on every wire, before a server that speaks a script: real template and tokenizer."""

import json
import urllib.error
import urllib.request

import pytest
from server import scripted

CONTEXT = 1024


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    script = tmp_path_factory.mktemp("limits") / "script.json"
    script.write_text(json.dumps({"rules": [{"say": [{"text": "word ", "times": 500}]}]}))
    yield from scripted(script, "--context", str(CONTEXT))


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def asking(text):
    return [{"role": "user", "content": text}]


TOOLS = [
    {"type": "function", "function": {"name": f"tool_{i}", "description": "Does something useful. " * 10}}
    for i in range(60)
]
LONG = "one " * 3000
WIRES = {
    "/v1/chat/completions": {"messages": asking(LONG)},
    "/v1/completions": {"prompt": LONG},
    "/v1/responses": {"input": LONG},
    "/v1/messages": {"messages": asking(LONG), "max_tokens": 9},
    "/api/chat": {"messages": asking(LONG)},
    "/api/generate": {"prompt": LONG},
}
TOO_MANY_TOOLS = {
    "/v1/chat/completions": {"messages": asking("hi"), "tools": TOOLS},
    "/v1/responses": {"input": "hi", "tools": [{"type": "function", **tool["function"]} for tool in TOOLS]},
    "/v1/messages": {"messages": asking("hi"), "max_tokens": 9, "tools": [tool["function"] for tool in TOOLS]},
    "/api/chat": {"messages": asking("hi"), "tools": TOOLS},
}


def message_of(error):
    return error["error"] if isinstance(error["error"], str) else error["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [*WIRES.items(), *TOO_MANY_TOOLS.items()],
    ids=[*WIRES, *(f"tools of {path}" for path in TOO_MANY_TOOLS)],
)
def test_a_prompt_over_the_context_names_both_numbers(small, path, body, stream):
    status, answer = post(small, path, {**body, "stream": stream})
    assert status == 400
    words = message_of(answer)
    assert words.startswith("prompt is too long: ")
    assert f" tokens > {CONTEXT - 1} maximum" in words
    assert int(words.split()[4]) > CONTEXT


def test_an_answer_ends_with_the_context(small):
    """A prompt that fits with less room than max_tokens asks for."""
    words = 900
    while post(small, "/tokenize", {"messages": asking("one " * (words + 1))})[1]["count"] <= CONTEXT - 10:
        words += 1
    _, chat = post(small, "/v1/chat/completions", {"messages": asking("one " * words), "max_tokens": 100})
    assert chat["choices"][0]["finish_reason"] == "length"
    assert chat["usage"]["total_tokens"] == CONTEXT
    _, message = post(small, "/v1/messages", {"messages": asking("one " * words), "max_tokens": 100})
    assert message["stop_reason"] == "max_tokens"
    _, response = post(small, "/v1/responses", {"input": "one " * words, "max_output_tokens": 100})
    assert response["incomplete_details"]["reason"] == "max_output_tokens"
    _, ollama = post(small, "/api/chat", {"messages": asking("one " * words), "stream": False})
    assert ollama["done_reason"] == "length"
    assert ollama["prompt_eval_count"] + ollama["eval_count"] == CONTEXT
