"""Ollama's API, as its official client sees it."""

import urllib.request

import ollama
import pytest

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("read", "list")]
ARGUMENTS = {"path": 'café "a"', "n": 1}
GREEDY = {"temperature": 0, "num_predict": 24}


@pytest.fixture(scope="module")
def server(url):
    return ollama.Client(host=url)


@pytest.fixture(scope="module")
def demo(demo_url):
    return ollama.Client(host=demo_url)


@pytest.fixture(scope="module")
def name(server):
    return server.list().models[0].model


def test_the_model_is_listed_and_shown(server, name):
    assert name.endswith(":latest")
    shown = server.show(name)
    family = shown.modelinfo["general.architecture"]
    assert shown.modelinfo[f"{family}.context_length"] > 0
    assert "tools" in shown.capabilities
    [loaded] = server.ps().models
    assert loaded.model == name
    assert loaded.size > 0
    assert loaded.context_length > 0


def test_somebody_is_there(url):
    for method in ("HEAD", "GET"):
        with urllib.request.urlopen(urllib.request.Request(url, method=method)) as response:
            assert response.status == 200


def test_chat_whole_and_streamed(server, name):
    whole = server.chat(name, QUESTION, options=GREEDY)
    assert whole.message.role == "assistant"
    assert whole.message.content
    assert whole.done
    assert whole.done_reason in ("stop", "length")
    assert whole.total_duration >= whole.eval_duration >= 0
    chunks = list(server.chat(name, QUESTION, options=GREEDY, stream=True))
    assert "".join(chunk.message.content for chunk in chunks) == whole.message.content
    assert [chunk.done for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].done_reason == whole.done_reason
    assert chunks[-1].eval_count == whole.eval_count <= 24
    assert chunks[-1].prompt_eval_count == whole.prompt_eval_count > 0


def test_generate_whole_and_streamed(server, name):
    whole = server.generate(name, "What is the capital of France?", system="Be brief.", options=GREEDY)
    assert whole.response
    chunks = list(server.generate(name, QUESTION[0]["content"], system="Be brief.", options=GREEDY, stream=True))
    assert "".join(chunk.response for chunk in chunks) == whole.response
    raw = server.generate(name, "1 2 3 4 5", raw=True, options=GREEDY)
    assert raw.prompt_eval_count < whole.prompt_eval_count


def test_a_length_is_told_and_a_stop_never_shows(server, name):
    cut = server.chat(name, QUESTION, options={"temperature": 0, "num_predict": 2})
    assert cut.done_reason == "length"
    assert cut.eval_count == 2
    whole = server.chat(name, QUESTION, options=GREEDY).message.content
    stop = whole[len(whole) // 2 : len(whole) // 2 + 4]
    assert server.chat(name, QUESTION, options={**GREEDY, "stop": [stop]}).message.content == whole[: whole.index(stop)]


def test_the_model_is_loaded_by_an_empty_request(server, name):
    assert server.chat(name).done_reason == "load"
    assert server.generate(name, keep_alive="5m").done_reason == "load"


@pytest.mark.parametrize("stream", [False, True])
def test_calls(demo, stream):
    answer = demo.chat("demo", QUESTION, tools=TOOLS, stream=stream)
    parts = [part.message for part in answer] if stream else [answer.message]
    assert "".join(part.thinking or "" for part in parts) == "What now?"
    assert "".join(part.content for part in parts) == "Let me see."
    calls = [call.function for part in parts for call in part.tool_calls or []]
    assert [call.name for call in calls] == ["read", "list"]
    assert [call.arguments for call in calls] == [ARGUMENTS] * 2


def test_goes_round(demo):
    message = demo.chat("demo", QUESTION, tools=TOOLS).message
    results = [
        {"role": "tool", "tool_name": call.function.name, "content": f"result of {call.function.name}"}
        for call in message.tool_calls
    ]
    last = demo.chat("demo", [*QUESTION, message, *results], tools=TOOLS)
    assert last.message.content == "It said: result of list"
    assert last.done_reason == "stop"


def test_tools_from_functions(demo):
    def read(path: str) -> str:
        """Reads a file."""
        return path

    [call] = demo.chat("demo", QUESTION, tools=[read]).message.tool_calls
    assert call.function.name == "read"


@pytest.mark.parametrize(
    ("fields", "status", "word"),
    [
        ({"model": "no-such-model"}, 404, "no-such-model"),
        ({"options": {"temperature": -1}}, 400, "options.temperature"),
        ({"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, 400, "images"),
        ({"messages": [{"role": "user", "content": "one " * 9000}]}, 400, "prompt is too long: "),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_named(server, name, fields, status, word, stream):
    with pytest.raises(ollama.ResponseError) as caught:
        list(server.chat(**{"model": name, "messages": QUESTION, "stream": stream, **fields}))
    assert caught.value.status_code == status
    assert word in caught.value.error
