"""Tools on both wires, as the official SDKs see them, before a scripted model that calls every tool it is shown."""

import json

import anthropic
import openai
import pytest

MODEL = "demo"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}
FUNCTIONS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("read", "list")]
TOOLS = [{"name": name, "input_schema": SCHEMA} for name in ("read", "list")]
ARGUMENTS = {"path": 'café "a"', "n": 1}
QUESTION = [{"role": "user", "content": "Look."}]


@pytest.fixture(scope="module")
def openai_client(demo_url):
    with openai.OpenAI(base_url=f"{demo_url}/v1", api_key="none", max_retries=0) as made:
        yield made


@pytest.fixture(scope="module")
def claude_client(demo_url):
    with anthropic.Anthropic(base_url=demo_url, api_key="none", max_retries=0) as made:
        yield made


def chat(client, messages, **fields):
    return client.chat.completions.create(model=MODEL, messages=messages, tools=FUNCTIONS, **fields)


def test_chat_calls_whole(openai_client):
    choice = chat(openai_client, QUESTION).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "\n\nLet me see."
    assert choice.message.reasoning_content == "What now?"
    assert [call.function.name for call in choice.message.tool_calls] == ["read", "list"]
    assert [json.loads(call.function.arguments) for call in choice.message.tool_calls] == [ARGUMENTS] * 2
    assert len({call.id for call in choice.message.tool_calls}) == 2


def test_chat_calls_streamed_by_the_helper(openai_client):
    whole = chat(openai_client, QUESTION).choices[0].message
    with openai_client.chat.completions.stream(model=MODEL, messages=QUESTION, tools=FUNCTIONS) as stream:
        kinds = [event.type for event in stream]
        message = stream.get_final_completion().choices[0].message
    assert "tool_calls.function.arguments.delta" in kinds
    assert kinds.count("tool_calls.function.arguments.done") == 2
    assert message.content == whole.content
    shown = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls]
    assert shown == [(call.id, call.function.name, call.function.arguments) for call in whole.tool_calls]


def test_chat_goes_round(openai_client):
    message = chat(openai_client, QUESTION).choices[0].message
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": [{"type": "text", "text": f"result of {call.id}"}]}
        for call in message.tool_calls
    ]
    history = [*QUESTION, message.model_dump(exclude_none=True), *results]
    answer = chat(openai_client, history).choices[0]
    assert answer.finish_reason == "stop"
    assert answer.message.content == "list said: result of call_1"


def test_chat_one_call_at_a_time(openai_client):
    for stream in (False, True):
        answer = chat(openai_client, QUESTION, parallel_tool_calls=False, stream=stream)
        if stream:
            names = [
                call.function.name
                for chunk in answer
                for choice in chunk.choices
                for call in choice.delta.tool_calls or []
                if call.function.name
            ]
        else:
            names = [call.function.name for call in answer.choices[0].message.tool_calls]
        assert names == ["read"]


def test_chat_without_tools_allowed(openai_client):
    choice = chat(openai_client, QUESTION, tool_choice="none").choices[0]
    assert choice.message.tool_calls is None


def message(client, messages, **fields):
    return client.messages.create(model=MODEL, max_tokens=99, messages=messages, tools=TOOLS, **fields)


def test_messages_blocks_whole(claude_client):
    answer = message(claude_client, QUESTION)
    assert answer.stop_reason == "tool_use"
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.content[0].thinking == "What now?"
    assert answer.content[0].signature
    assert [block.input for block in answer.content[2:]] == [ARGUMENTS] * 2
    assert answer.usage.input_tokens == 5
    assert answer.usage.cache_read_input_tokens == 2


def without_signature(block):
    """A signature names its own answer."""
    return block.model_dump(exclude={"signature"})


def test_messages_streamed_by_the_helper(claude_client):
    whole = message(claude_client, QUESTION)
    with claude_client.messages.stream(model=MODEL, max_tokens=99, messages=QUESTION, tools=TOOLS) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()
    assert {"thinking", "signature", "text", "input_json"} <= set(kinds)
    assert [without_signature(block) for block in streamed.content] == [
        without_signature(block) for block in whole.content
    ]
    assert streamed.stop_reason == "tool_use"
    assert streamed.usage == whole.usage


def test_messages_go_round(claude_client):
    answer = message(claude_client, QUESTION)
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": f"result of {block.id}", "is_error": index == 1}
        for index, block in enumerate(answer.content[2:])
    ]
    history = [*QUESTION, {"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    last = message(claude_client, history)
    assert last.stop_reason == "end_turn"
    assert last.content[-1].text == "list said: Error: result of call_1"


def test_messages_run_by_the_helper(claude_client):
    @anthropic.beta_tool
    def read(path: str, n: int) -> str:
        """Reads."""
        return f"{path} {n}"

    runner = claude_client.beta.messages.tool_runner(model=MODEL, max_tokens=99, messages=QUESTION, tools=[read])
    assert runner.until_done().content[-1].text == 'read said: café "a" 1'


def test_messages_one_call_at_a_time(claude_client):
    answer = message(claude_client, QUESTION, tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert [block.name for block in answer.content if block.type == "tool_use"] == ["read"]


def test_messages_without_tools_allowed(claude_client):
    answer = message(claude_client, QUESTION, tool_choice={"type": "none"})
    assert answer.stop_reason == "end_turn"
