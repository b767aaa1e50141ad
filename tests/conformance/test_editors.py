"""Requests in the shapes of Open WebUI and of editors with a local provider, written after their public sources (Continue,
Cline, Zed, parts of Open WebUI) or as clients of that kind do (Xcode, JetBrains AI Assistant); none is a recording. Each is
taken whole, with nothing of it unknown, whether the base URL ends in /v1 or not."""

import json
import urllib.request

import pytest

FUNCTION = {"name": "read_file", "description": "Reads", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
SYSTEM = {"role": "system", "content": "You are a helper."}
USER = {"role": "user", "content": "Look."}
CALL = {"id": "call_9", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a"}'}}

CHATS = {
    "open webui": {**STREAM, "model": "demo", "messages": [USER], "temperature": 0.7, "max_tokens": 64, "seed": 1},
    "open webui, a title": {
        "model": "demo",
        "messages": [{"role": "user", "content": "### Task:\nGenerate a concise title summarizing the chat history."}],
        "stream": False,
        "max_completion_tokens": 64,
    },
    "open webui, an answer that goes on": {
        "model": "demo",
        "messages": [USER, {"role": "assistant", "content": "It is"}],
        "stream": True,
        "continue_final_message": True,
        "add_generation_prompt": False,
    },
    "open webui, tools": {
        **STREAM,
        "model": "demo",
        "messages": [
            SYSTEM,
            USER,
            {"role": "assistant", "content": "", "tool_calls": [{**CALL, "index": 0}]},
            {"role": "tool", "tool_call_id": "call_9", "content": "text"},
        ],
        "tools": [TOOL],
    },
    "continue": {
        "messages": [SYSTEM, {"role": "user", "content": [{"type": "text", "text": "Look."}]}],
        "model": "demo",
        "max_tokens": 64,
        "stream": True,
        "tools": [TOOL],
        "parallel_tool_calls": False,
    },
    "cline": {**STREAM, "model": "demo", "messages": [SYSTEM, USER], "temperature": 0},
    "cline, native tools": {
        **STREAM,
        "model": "demo",
        "messages": [
            {"role": "developer", "content": "Rules"},
            {"role": "user", "content": [{"type": "text", "text": "<task>x</task>"}, {"type": "text", "text": "env"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_9", "content": "text"},
        ],
        "reasoning_effort": "medium",
        "tools": [{**TOOL, "function": {**FUNCTION, "strict": False}}],
    },
    "zed": {
        **STREAM,
        "model": "demo",
        "messages": [
            SYSTEM,
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"},
            {"role": "tool", "content": [], "tool_call_id": "call_9"},
        ],
        "max_completion_tokens": 64,
        "stop": [],
        "temperature": 1.0,
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "tools": [TOOL],
        "prompt_cache_key": "k",
    },
    "xcode": {**STREAM, "model": "demo", "messages": [SYSTEM, USER], "tools": [TOOL], "tool_choice": "auto"},
    "jetbrains": {
        "model": "demo",
        "messages": [SYSTEM, USER],
        "temperature": 0.2,
        "stream": True,
        "max_tokens": 64,
        "n": 1,
        "tools": [],
    },
}

OLLAMA = {
    "open webui": {
        "model": "demo:latest",
        "messages": [SYSTEM, USER],
        "stream": True,
        "options": {"temperature": 0.7, "num_ctx": 2048, "stop": ["###"], "num_predict": 64},
        "keep_alive": "5m",
        "think": False,
        "tools": [TOOL],
    },
    "continue": {
        "model": "demo",
        "messages": [{"role": "user", "content": "Look."}],
        "options": {"temperature": 0.1, "num_predict": 64, "num_ctx": 4096, "use_mmap": True, "stop": ["x"]},
        "keep_alive": 1800,
        "stream": False,
        "tools": [TOOL],
    },
    "zed": {
        "model": "demo:latest",
        "messages": [SYSTEM, {"role": "assistant", "content": "a", "thinking": None, "tool_calls": None}, USER],
        "stream": True,
        "keep_alive": -1,
        "options": {"num_ctx": 4096, "num_predict": None, "stop": [], "temperature": 1.0, "top_p": None},
        "tools": [TOOL],
        "think": True,
    },
    "jetbrains": {"model": "demo:latest", "messages": [SYSTEM, USER], "stream": True, "options": {"temperature": 0.2}},
}


def fetch(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", "Authorization": "Bearer none"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.read().decode()


def ignored(url):
    return {line for line in fetch(f"{url}/metrics").splitlines() if line.startswith("tandem_ignored_fields_total")}


def chunks(text):
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


@pytest.mark.parametrize("base", ["", "/v1"])
@pytest.mark.parametrize("name", CHATS)
def test_chats(demo_url, name, base):
    before = ignored(demo_url)
    text = fetch(f"{demo_url}{base}/chat/completions", CHATS[name])
    assert ignored(demo_url) == before
    if not CHATS[name]["stream"]:
        assert json.loads(text)["choices"][0]["message"]["content"]
        return
    parts = chunks(text)
    choices = [choice for part in parts for choice in part["choices"]]
    assert choices[-1]["finish_reason"] in ("stop", "length", "tool_calls")
    assert [part["usage"]["total_tokens"] for part in parts if part.get("usage")] or "stream_options" not in CHATS[name]
    for choice in choices:
        for call in choice["delta"].get("tool_calls", []):
            assert isinstance(call["index"], int)


@pytest.mark.parametrize("name", OLLAMA)
def test_ollama_chats(demo_url, name):
    before = ignored(demo_url)
    lines = [json.loads(line) for line in fetch(f"{demo_url}/api/chat", OLLAMA[name]).splitlines()]
    assert ignored(demo_url) == before
    assert lines[-1]["done"] is True
    assert any(line["message"].get("tool_calls") for line in lines) == ("tools" in OLLAMA[name])


def test_what_editors_look_at_first(demo_url):
    for base in ("", "/v1"):
        [model] = json.loads(fetch(f"{demo_url}{base}/models"))["data"]
        assert model["id"]
    name = json.loads(fetch(f"{demo_url}/api/tags"))["models"][0]["name"]
    assert name == f"{model['id']}:latest"
    shown = json.loads(fetch(f"{demo_url}/api/show", {"name": name}))
    assert "tools" in shown["capabilities"]
    assert (
        shown["model_info"][f"{shown['model_info']['general.architecture']}.context_length"]
        == model["context_length"]
        > 0
    )
    assert json.loads(fetch(f"{demo_url}/api/version"))["version"]


def test_autocompletion_of_raw_prompts(demo_url):
    body = {"model": "demo", "prompt": "<PRE>a<SUF>b<MID>", "raw": True, "stream": False, "keep_alive": 1800}
    assert json.loads(fetch(f"{demo_url}/api/generate", {**body, "options": {"num_predict": 8}}))["response"]
    legacy = {"model": "demo", "prompt": "<PRE>a<SUF>b<MID>", "max_tokens": 8, "stream": True, "stop": ["<EOT>"]}
    for base in ("", "/v1"):
        assert chunks(fetch(f"{demo_url}{base}/completions", legacy))
