"""`tandem serve --script`: the format's promises, through both SDKs and in every dialect."""

import http.client
import json
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

import anthropic
import openai
import pytest
from sdks import anthropic_at, openai_at
from server import BINARY, ENVIRONMENT, ROOT, find_url, scripted

PATCH = '*** Begin "a"\n+\tcafé \\ 😀\n'
SCRIPT = {
    "pace": {"tokens": 3},
    "find": {"user": r"in (?<city>\w+)"},
    "rules": [
        {"when": {"last": "^slow"}, "pace": {"tokens": 1, "first_ms": 200, "step_ms": 20}, "say": "one two three four"},
        {"when": {"last": "^full"}, "refuse": {"code": "busy", "message": "the queue is full"}},
        {"when": {"last": "^broken"}, "say": "Well, ", "fail": {"code": "io", "message": "the disk is gone"}},
        {
            "when": {"last": "^endless"},
            "say": [{"text": "more ", "times": 100000}],
            "pace": {"tokens": 1, "step_ms": 5},
        },
        {
            "when": {"results": 0, "tools": ["get_time.city"]},
            "say": [
                {"think": "Which city?"},
                {"text": "Let me see."},
                {"call": {"name": "get_time", "arguments": {"city": "${city}"}}},
                {"call": {"name": "get_time", "arguments": {"city": "Bergen"}}},
            ],
        },
        {
            "when": {"results": 0, "tools": ["patch.input"]},
            "say": [{"text": "So:"}, {"call": {"name": "patch", "arguments": {"input": PATCH}}}],
        },
        {"when": {"result": "^patched"}, "say": "It is done."},
        {"when": {"results": 2, "result": r"(?<time>\d\d:\d\d)"}, "say": "In ${city} it is ${time}."},
        {"when": {"tools": []}, "say": "Hello."},
    ],
}
TOOL = {"name": "get_time", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
QUESTION = [{"role": "user", "content": "What time is it in Oslo?"}]


def dialects():
    registry = (ROOT / "src/dialect/family/registry.inc").read_text()
    return re.findall(r"^X\((\w+)\)", registry, re.M)


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "script.json"
    path.write_text(json.dumps(SCRIPT))
    return path


@pytest.fixture(scope="module")
def url(script):
    yield from scripted(script, "--reasoning-dialect", "think", "--context", "20000")


@pytest.fixture(scope="module")
def chat(url):
    with openai_at(url) as made:
        yield made


def ask(chat, text, **fields):
    return chat.chat.completions.create(model="default_model", messages=[{"role": "user", "content": text}], **fields)


def chat_round(url, stream):
    """(thinking, text, calls, last words) of the whole task."""
    with openai_at(url) as client:
        fields = {"model": "default_model", "tools": [{"type": "function", "function": TOOL}]}
        if stream:
            with client.chat.completions.stream(messages=QUESTION, **fields) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(messages=QUESTION, **fields).choices[0].message
        results = [{"role": "tool", "tool_call_id": call.id, "content": "12:30"} for call in message.tool_calls]
        history = [*QUESTION, message.model_dump(exclude_none=True), *results]
        last = client.chat.completions.create(messages=history, **fields).choices[0].message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
    return message.reasoning_content, message.content, calls, last.content


def messages_round(url, stream):
    with anthropic_at(url) as client:
        tool = {"name": TOOL["name"], "input_schema": TOOL["parameters"]}
        fields = {"model": "default_model", "max_tokens": 300, "tools": [tool]}
        if stream:
            with client.messages.stream(messages=QUESTION, **fields) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(messages=QUESTION, **fields)
        thinking, text, *uses = message.content
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": "12:30"} for use in uses]
        history = [*QUESTION, {"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
        last = client.messages.create(messages=history, **fields).content[-1]
    return thinking.thinking, text.text, [(use.name, use.input) for use in uses], last.text


def responses_round(url, stream):
    with openai_at(url) as client:
        fields = {"model": "default_model", "store": False, "tools": [{"type": "function", "strict": False, **TOOL}]}
        if stream:
            with client.responses.stream(input=QUESTION, **fields) as events:
                output = events.get_final_response().output
        else:
            output = client.responses.create(input=QUESTION, **fields).output
        thinking, text, *calls = output
        results = [{"type": "function_call_output", "call_id": call.call_id, "output": "12:30"} for call in calls]
        history = [*QUESTION, *[item.model_dump(exclude_none=True) for item in output], *results]
        last = client.responses.create(input=history, **fields).output_text
    made = [(call.name, json.loads(call.arguments)) for call in calls]
    return thinking.content[0].text, text.content[0].text, made, last


@pytest.mark.parametrize("dialect", dialects())
def test_one_script_says_the_same_in_every_dialect_on_every_wire(script, dialect):
    calls = [("get_time", {"city": "Oslo"}), ("get_time", {"city": "Bergen"})]
    expected = ("Which city?", "Let me see.", calls, "In Oslo it is 12:30.")
    for url in scripted(script, "--reasoning-dialect", "think", "--tool-dialect", dialect):
        for wire in (chat_round, messages_round, responses_round):
            for stream in (False, True):
                assert wire(url, stream) == expected


def chat_patch(client, stream):
    """The pieces of what a custom tool is given, and the last words."""
    fields = {
        "model": "default_model",
        "tools": [{"type": "custom", "custom": {"name": "patch", "description": "Edits."}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [
            {"type": "custom", "custom": {"name": "patch"}}]}},
    }  # fmt: skip
    if stream:
        call, pieces = {}, []
        for chunk in client.chat.completions.create(messages=QUESTION, stream=True, **fields):
            for piece in chunk.choices[0].delta.tool_calls or []:
                call = {"id": piece.id or call["id"], "type": piece.type or call["type"]}
                pieces.append(piece.custom["input"])
        call["custom"] = {"name": "patch", "input": "".join(pieces)}
    else:
        choice = client.chat.completions.create(messages=QUESTION, **fields).choices[0]
        assert choice.finish_reason == "tool_calls"
        call = choice.message.tool_calls[0].model_dump()
        pieces = [call["custom"]["input"]]
    assert call["type"] == "custom"
    answer = {"role": "assistant", "content": "So:", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "patched"}
    last = client.chat.completions.create(messages=[*QUESTION, answer, result], **fields)
    return [piece for piece in pieces if piece], last.choices[0].message.content


def responses_patch(client, stream):
    fields = {"model": "default_model", "tools": [{"type": "custom", "name": "patch", "description": "Edits."}]}
    if stream:
        with client.responses.stream(input=QUESTION, **fields) as events:
            pieces = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
            output = events.get_final_response().output
        assert "".join(pieces) == output[-1].input
    else:
        output = client.responses.create(input=QUESTION, **fields).output
        pieces = [output[-1].input]
    call = output[-1]
    result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "patched"}
    history = [*QUESTION, *[item.model_dump(exclude_none=True) for item in output], result]
    return pieces, client.responses.create(input=history, **fields).output_text


@pytest.mark.parametrize("dialect", dialects())
def test_a_custom_tool_gets_its_text_in_every_dialect(script, dialect):
    for url in scripted(script, "--tool-dialect", dialect):
        with openai_at(url) as client:
            for wire in (chat_patch, responses_patch):
                for stream in (False, True):
                    pieces, last = wire(client, stream)
                    assert ("".join(pieces), last) == (PATCH, "It is done.")
                    assert dialect != "json_tools" or stream == (len(pieces) > 1)


def test_it_is_paced(chat):
    begin = time.monotonic()
    chunks = list(ask(chat, "slow", stream=True))
    assert time.monotonic() - begin >= 0.2 + 3 * 0.02
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "one two three four"
    assert len([chunk for chunk in chunks if chunk.choices[0].delta.content]) >= 4


def test_it_refuses_and_breaks_as_it_is_told(chat, url):
    with pytest.raises(openai.RateLimitError, match="the queue is full"):
        ask(chat, "full")
    with pytest.raises(openai.InternalServerError, match="the disk is gone"):
        ask(chat, "broken")
    with pytest.raises(openai.APIError, match="the disk is gone"):
        list(ask(chat, "broken", stream=True))
    claude = anthropic_at(url)
    with claude, pytest.raises(anthropic.RateLimitError):
        claude.messages.create(model="default_model", max_tokens=9, messages=[{"role": "user", "content": "full"}])


def test_what_no_rule_is_for_is_named(chat):
    tools = [{"type": "function", "function": {"name": "other"}}]
    with pytest.raises(openai.BadRequestError, match="no rule of the script.*tools: other"):
        ask(chat, "hello", tools=tools)


def test_limits_and_stops_hold(chat):
    cut = ask(chat, "endless", max_tokens=7)
    assert (cut.choices[0].finish_reason, cut.usage.completion_tokens) == ("length", 7)
    assert ask(chat, "hello", stop="lo.").choices[0].message.content == "Hel"
    assert [choice.message.content for choice in ask(chat, "hello", n=3).choices] == ["Hello."] * 3


def test_a_closed_stream_ends_its_request(chat):
    stream = ask(chat, "endless", stream=True)
    name = next(iter(stream)).id
    stream.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        recent = chat.get("/requests", cast_to=object)["recent"]
        if any(entry["id"] == name and entry["outcome"] == "cancelled" for entry in recent):
            return
        time.sleep(0.02)
    pytest.fail("the request still runs")


LAST_WORDS = {
    "/v1/chat/completions": ({"messages": [{"role": "user", "content": "endless"}], "stream": True}, b'{"error"'),
    "/v1/messages": ({"messages": [{"role": "user", "content": "endless"}], "stream": True}, b"event: error"),
    "/v1/responses": ({"input": "endless", "stream": True}, b"response.failed"),
    "/api/chat": ({"messages": [{"role": "user", "content": "endless"}]}, b'{"error"'),
}


def test_the_end_of_a_drain_is_told_on_every_wire(script):
    server = subprocess.Popen(
        [BINARY, "serve", "--port", "0", "--drain", "0", "--script", str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    try:
        url = find_url(server)
        streams = []
        for path, (body, _) in LAST_WORDS.items():
            request = urllib.request.Request(
                url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            streams.append(urllib.request.urlopen(request, timeout=20))
        for stream in streams:
            assert stream.read(1)
        server.send_signal(signal.SIGTERM)
        for (path, (_, words)), stream in zip(LAST_WORDS.items(), streams, strict=True):
            assert words in stream.read()[-4000:], path
        assert server.wait(timeout=20) == 0
    finally:
        server.kill()
        server.wait()


def test_a_repeated_prompt_is_reused(chat):
    first = ask(chat, "hello again, and again")
    usage = ask(chat, "hello again, and again").usage
    assert usage.prompt_tokens_details.cached_tokens == first.usage.prompt_tokens - 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--script", "/nowhere.json"], "cannot read /nowhere.json"),
        (["--script", "SCRIPT", "--ranks", "2"], "--ranks excludes --script"),
    ],
)
def test_what_cannot_be_is_refused(script, arguments, words):
    arguments = [str(script) if word == "SCRIPT" else word for word in arguments]
    done = subprocess.run([BINARY, "serve", "--port", "0", *arguments], capture_output=True, text=True, timeout=20)
    assert done.returncode != 0
    assert words in done.stderr


def test_an_error_of_the_script_names_its_place(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"rules": [{"say": "a"}, {"say": [{"txt": "b"}]}]}))
    done = subprocess.run(
        [BINARY, "serve", "--port", "0", "--script", str(path)], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 1
    assert "bad.json: rules[1].say[0].txt: expected one of the keys" in done.stderr


def test_a_folder_needs_no_weights(tmp_path, script):
    text = pathlib.Path(ROOT / "src/text/testdata/byte_level.json").read_text()
    (tmp_path / "tokenizer.json").write_text(text)
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|im_end|>", "chat_template": "{% for m in messages %}{{ m.content }}\n{% endfor %}"})
    )
    for url in scripted(script, str(tmp_path)):
        with openai_at(url) as chat:
            assert ask(chat, "hello").choices[0].message.content == "Hello."


def test_a_server_that_drains_takes_nothing_new(script):
    words = [BINARY, "serve", "--port", "0", "--script", str(script), "--drain", "20"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    url = find_url(process)
    body = {"model": "default_model", "messages": [{"role": "user", "content": "endless"}], "stream": True}
    head = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), head)):
        opened = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        opened.request("GET", "/health/live")
        opened.getresponse().read()
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        opened.request("POST", "/v1/chat/completions", json.dumps({**body, "stream": False}), head)
        refused = opened.getresponse()
        assert refused.status == 503
        assert refused.getheader("Retry-After") == "5"
        assert "shutting down" in json.loads(refused.read())["error"]["message"]
    process.wait(timeout=60)
