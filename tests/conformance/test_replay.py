"""Exact replay: what a client sends back of an answer is shown as it was drawn, and what names an answer outlives the
server. Before scripted servers of a small model that thinks, and before the default model."""

import contextlib
import json
import re
import shutil
import time
import urllib.request

import pytest
from sdks import anthropic_at, openai_at
from server import ROOT, killed, script_command, scripted

TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>
{{ m.reasoning_content | trim }}
</think>

{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}{% set shown = tools %}"""

LOOKS = [{"think": " I have  to look.\n"}, {"text": "Let me see. "}]
SCRIPT = {
    "rules": [
        {"when": {"last": "^plain"}, "say": [{"think": "It is easy, I think."}, {"text": "Done."}]},
        {
            "when": {"tools": ["patch.input"], "results": 0},
            "say": [*LOOKS, {"call": {"name": "patch", "arguments": {"input": '*** "a"\n+é\n'}}}],
        },
        {"when": {"results": 0}, "say": [*LOOKS, {"call": {"name": "read", "arguments": {"n": 3, "path": "a.txt"}}}]},
        {"when": {"results": 1}, "say": [{"call": {"name": "read", "arguments": {"path": "b.txt"}}}]},
        {"say": [{"think": "Now I know."}, {"text": "Done."}]},
    ]
}
SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "n": {"type": "integer"},
        "whole": {"type": "boolean", "default": False},
    },
}
FUNCTIONS = [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]
TOOLS = [{"name": "read", "input_schema": SCHEMA}]
MODEL = "default_model"
QUESTION = {"role": "user", "content": "What is in it?"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model's text side and a script."""
    folder = tmp_path_factory.mktemp("thinker")
    shutil.copy(ROOT / "src/text/testdata/byte_level.json", folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 8192}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    return folder


@pytest.fixture
def serve(files):
    """Starts a server with a state folder."""

    @contextlib.contextmanager
    def start(state, *options):
        yield from scripted(files / "script.json", str(files), "--state-dir", str(state), *options)

    return start


def get(url, path):
    with urllib.request.urlopen(f"{url}{path}") as answer:
        return answer.read().decode()


def counter(url, name):
    lines = [line for line in get(url, "/metrics").splitlines() if line.startswith(f"tandem_replay_{name}")]
    return sum(float(line.split()[-1]) for line in lines)


def claude_code(message):
    """Arguments in the schema's order, with its defaults."""
    for call in message["tool_calls"]:
        given = json.loads(call["function"]["arguments"])
        filled = {name: given.get(name, rule.get("default")) for name, rule in SCHEMA["properties"].items()}
        kept = {name: value for name, value in filled.items() if value is not None}
        call["function"]["arguments"] = json.dumps(kept)


def opencode(message):
    for call in message["tool_calls"]:
        call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), separators=(",", ":"))


def qwen(message):
    message["content"] = (message.get("content") or "").strip() or None
    if message.get("reasoning_content"):
        message["reasoning_content"] = message["reasoning_content"].strip()


def drops_thinking(message):
    message.pop("reasoning_content", None)


@pytest.mark.parametrize("rewrite", [claude_code, opencode, qwen, drops_thinking, lambda message: None])
def test_an_agents_next_turn_computes_only_the_new_result(serve, tmp_path, rewrite):
    with serve(tmp_path) as url, openai_at(url) as client:
        messages = [QUESTION]
        for turn in range(2):
            before = client.chat.completions.create(model=MODEL, messages=messages, tools=FUNCTIONS)
            message = before.choices[0].message.model_dump(exclude_none=True)
            rewrite(message)
            result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": f"result {turn}"}
            messages += [message, result]
        after = client.chat.completions.create(model=MODEL, messages=messages, tools=FUNCTIONS)
        known = before.usage.prompt_tokens + before.usage.completion_tokens
        assert after.usage.prompt_tokens_details.cached_tokens == known
        assert counter(url, 'messages_total{outcome="spliced"}') == 3
        assert counter(url, "tokens_total") > 0
        latest = json.loads(get(url, "/v1/requests"))["recent"][0]
        assert latest["divergence"] is None


def test_a_custom_tools_call_is_shown_as_it_was_drawn(serve, tmp_path):
    tools = [{"type": "custom", "custom": {"name": "patch"}}]
    with serve(tmp_path) as url, openai_at(url) as client:
        before = client.chat.completions.create(model=MODEL, messages=[QUESTION], tools=tools)
        message = before.choices[0].message.model_dump(exclude_none=True)
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "patched"}
        after = client.chat.completions.create(model=MODEL, messages=[QUESTION, message, result], tools=tools)
        known = before.usage.prompt_tokens + before.usage.completion_tokens
        assert after.usage.prompt_tokens_details.cached_tokens == known
        assert counter(url, 'messages_total{outcome="spliced"}') == 1


def test_an_edited_history_diverges_where_it_was_edited(serve, tmp_path):
    with serve(tmp_path) as url, openai_at(url) as client:
        first = client.chat.completions.create(model=MODEL, messages=[QUESTION], tools=FUNCTIONS)
        message = first.choices[0].message.model_dump(exclude_none=True)
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "result"}
        client.chat.completions.create(model=MODEL, messages=[QUESTION, message, result], tools=FUNCTIONS)
        message["content"] = "I never said that."
        client.chat.completions.create(model=MODEL, messages=[QUESTION, message, result], tools=FUNCTIONS)
        latest = json.loads(get(url, "/v1/requests"))["recent"][0]
        assert latest["divergence"]["message"] == 1
        assert latest["divergence"]["role"] == "assistant"
        assert latest["divergence"]["reusable_tokens"] >= first.usage.prompt_tokens
        assert "never" not in json.dumps(latest)
        assert counter(url, 'messages_total{outcome="edited"}') == 1


def claude_history(thinking):
    """An answer of another conversation, so that nothing but its signature tells which it is."""
    answer = [*thinking, {"type": "text", "text": "Done."}]
    return [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Ho."},
        {"role": "user", "content": "plain"},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": "Go on."},
    ]


def count(url, thinking):
    with anthropic_at(url) as claude:
        return claude.messages.count_tokens(model=MODEL, messages=claude_history(thinking)).input_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_a_signature_outlives_the_server_but_not_its_key(serve, tmp_path, stream):
    ask = {"model": MODEL, "max_tokens": 200, "messages": [{"role": "user", "content": "plain"}]}
    with serve(tmp_path) as url, anthropic_at(url) as claude:
        if stream:
            with claude.messages.stream(**ask) as events:
                thought = events.get_final_message().content[0]
        else:
            thought = claude.messages.create(**ask).content[0]
        assert thought.thinking.strip() == "It is easy, I think."
        whole = count(url, [{"type": "thinking", "thinking": thought.thinking, "signature": thought.signature}])
        none = count(url, [])
        assert none < whole
    left_out = [{"type": "thinking", "thinking": "", "signature": thought.signature}]
    redacted = [{"type": "redacted_thinking", "data": thought.signature}]
    with serve(tmp_path) as url:
        assert count(url, left_out) == whole
        assert count(url, redacted) == whole
        for foreign in ("", "tandem1.msg_1.00", "ErUBCkYIBRgC", thought.signature[:-1] + "x"):
            assert count(url, [{"type": "thinking", "thinking": "", "signature": foreign}]) == none
        kept = [{"type": "thinking", "thinking": thought.thinking, "signature": "another server's"}]
        assert count(url, kept) == whole
    (tmp_path / "replay.key").unlink()
    with serve(tmp_path) as url:
        assert count(url, left_out) == none
        assert count(url, redacted) == none


def test_encrypted_content_outlives_the_server(serve, tmp_path):
    ask = {"model": MODEL, "store": False, "include": ["reasoning.encrypted_content"]}
    before = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Ho."}]
    after = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Go on."}]
    question = {"role": "user", "content": "plain"}
    with serve(tmp_path) as url, openai_at(url) as client:
        first = client.responses.create(input=[question], **ask)
        thought = first.output[0]
        assert thought.type == "reasoning"
        assert thought.encrypted_content
        plain = client.responses.create(model=MODEL, input=[question]).output[0]
        assert plain.encrypted_content is None

        def tokens(client, *items):
            answer = client.responses.create(input=[*before, question, *items, *after], **ask)
            return answer.usage.input_tokens

        whole = tokens(client, thought.model_dump(exclude_none=True))
        none = tokens(client)
        assert none < whole
    handle = {"type": "reasoning", "id": thought.id, "summary": [], "encrypted_content": thought.encrypted_content}
    with serve(tmp_path) as url, openai_at(url) as client:
        assert tokens(client, handle) == whole
        assert tokens(client, {**handle, "encrypted_content": "gAAAAAB"}) == none
    with serve(tmp_path / "other") as url, openai_at(url) as client:
        assert tokens(client, handle) == none


def test_without_replay_nothing_is_remembered(serve, tmp_path):
    with serve(tmp_path, "--no-replay") as url:
        with anthropic_at(url) as claude:
            answer = claude.messages.create(
                model=MODEL, max_tokens=200, messages=[{"role": "user", "content": "plain"}]
            )
        assert answer.content[0].signature
        left_out = [{"type": "thinking", "thinking": "", "signature": answer.content[0].signature}]
        assert count(url, left_out) == count(url, [])
        assert "tandem_replay" not in get(url, "/metrics")


def wait_until_kept(url):
    """Answers are written behind what is delivered."""
    for _ in range(200):
        if re.search(r'tandem_state_entries{kind="replay"} [1-9]', get(url, "/metrics")):
            return
        time.sleep(0.05)
    raise AssertionError("the answer was not kept in 10 s")


def killed_server(files, state):
    return killed(script_command(files / "script.json", str(files), "--state-dir", str(state)))


def warned_of(answer):
    return [warning["code"] for warning in getattr(answer, "warnings", [])]


def exchange_key(state):
    key = state / "replay.key"
    key.write_bytes(bytes(byte ^ 1 for byte in key.read_bytes()))


def test_handles_outlive_a_kill(files, serve, tmp_path):
    with killed_server(files, tmp_path) as url:
        ask = {"model": MODEL, "max_tokens": 200, "messages": [{"role": "user", "content": "plain"}]}
        with anthropic_at(url) as claude:
            thought = claude.messages.create(**ask).content[0]
        whole = count(url, [thought.model_dump()])
        none = count(url, [])
        wait_until_kept(url)
    left_out = [{"type": "thinking", "thinking": "", "signature": thought.signature}]

    def warnings(url):
        with anthropic_at(url) as claude:
            return warned_of(claude.messages.create(model=MODEL, max_tokens=9, messages=claude_history(left_out)))

    with serve(tmp_path) as url:
        assert none < whole
        assert count(url, left_out) == whole
        assert warnings(url) == []
    exchange_key(tmp_path)
    with serve(tmp_path) as url:
        assert count(url, left_out) == none
        assert warnings(url) == ["thought_not_found"]
        assert 'tandem_warnings_total{code="thought_not_found"} 1' in get(url, "/metrics")


def test_encrypted_content_outlives_a_kill(files, serve, tmp_path):
    ask = {"model": MODEL, "include": ["reasoning.encrypted_content"]}
    # Another conversation, in which the answer is not known by its place.
    before = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hi."}]
    question = {"role": "user", "content": "plain"}
    rest = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Go on."}]

    def asked(client, *items):
        return client.responses.create(input=[*before, question, *items, *rest], **ask)

    def tokens(client, *items):
        return asked(client, *items).usage.input_tokens

    with killed_server(files, tmp_path) as url, openai_at(url) as client:
        thought = client.responses.create(input=[question], **ask).output[0]
        wait_until_kept(url)
        whole = tokens(client, thought.model_dump(exclude_none=True))
        none = tokens(client)
    handle = {"type": "reasoning", "id": thought.id, "summary": [], "encrypted_content": thought.encrypted_content}
    with serve(tmp_path) as url, openai_at(url) as client:
        assert none < whole
        found = asked(client, handle)
        assert (found.usage.input_tokens, warned_of(found)) == (whole, [])
    exchange_key(tmp_path)
    with serve(tmp_path) as url, openai_at(url) as client:
        lost = asked(client, handle)
        assert (lost.usage.input_tokens, warned_of(lost)) == (none, ["thought_not_found"])


def test_the_default_models_next_turn_computes_only_what_is_new(url, client, model):
    messages = [{"role": "user", "content": "Name three colours of the rainbow, and say why you like them."}]
    first = client.chat.completions.create(model=model, messages=messages, max_tokens=48, temperature=1.2, seed=11)
    said = first.choices[0].message.content
    messages += [{"role": "assistant", "content": said.strip()}, {"role": "user", "content": "And three fruits?"}]
    second = client.chat.completions.create(model=model, messages=messages, max_tokens=4)
    # The last token that was drawn was never computed, and devices differ in whether they reuse a part of a page.
    known = first.usage.prompt_tokens + first.usage.completion_tokens - 1
    sizes = [line for line in get(url, "/metrics").splitlines() if line.startswith("tandem_kv_page_tokens{")]
    page = float(sizes[0].split()[-1])
    assert known - page < second.usage.prompt_tokens_details.cached_tokens <= known
