"""Tools on both wires, as the official SDKs see them, before a scripted model that calls every tool it is shown."""

import json

import anthropic

MODEL = "demo"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}
FUNCTIONS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("read", "list")]
TOOLS = [{"name": name, "input_schema": SCHEMA} for name in ("read", "list")]
ARGUMENTS = {"path": 'café "a"', "n": 1}
QUESTION = [{"role": "user", "content": "Look."}]


def chat(client, messages, **fields):
    return client.chat.completions.create(model=MODEL, messages=messages, tools=FUNCTIONS, **fields)


def test_chat_calls_whole(demo):
    choice = chat(demo, QUESTION).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Let me see."
    assert choice.message.reasoning_content == "What now?"
    assert [call.function.name for call in choice.message.tool_calls] == ["read", "list"]
    assert [json.loads(call.function.arguments) for call in choice.message.tool_calls] == [ARGUMENTS] * 2
    assert len({call.id for call in choice.message.tool_calls}) == 2


def test_chat_calls_streamed_by_the_helper(demo):
    whole = chat(demo, QUESTION).choices[0].message
    with demo.chat.completions.stream(model=MODEL, messages=QUESTION, tools=FUNCTIONS) as stream:
        kinds = [event.type for event in stream]
        message = stream.get_final_completion().choices[0].message
    assert "tool_calls.function.arguments.delta" in kinds
    assert kinds.count("tool_calls.function.arguments.done") == 2
    assert message.content == whole.content
    assert len({call.id for call in message.tool_calls}) == 2
    shown = [(call.function.name, call.function.arguments) for call in message.tool_calls]
    assert shown == [(call.function.name, call.function.arguments) for call in whole.tool_calls]


def test_chat_goes_round(demo):
    message = chat(demo, QUESTION).choices[0].message
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": [{"type": "text", "text": f"result of {call.id}"}]}
        for call in message.tool_calls
    ]
    history = [*QUESTION, message.model_dump(exclude_none=True), *results]
    answer = chat(demo, history).choices[0]
    assert answer.finish_reason == "stop"
    assert answer.message.content == f"It said: {results[-1]['content'][0]['text']}"


def test_chat_one_call_at_a_time(demo):
    for stream in (False, True):
        answer = chat(demo, QUESTION, parallel_tool_calls=False, stream=stream)
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


def test_chat_without_tools_allowed(demo):
    choice = chat(demo, QUESTION, tool_choice="none").choices[0]
    assert choice.message.tool_calls is None


def message(client, messages, **fields):
    return client.messages.create(model=MODEL, max_tokens=99, messages=messages, tools=TOOLS, **fields)


def test_messages_blocks_whole(demo_claude):
    answer = message(demo_claude, QUESTION)
    assert answer.stop_reason == "tool_use"
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.content[0].thinking == "What now?"
    assert answer.content[0].signature
    assert [block.input for block in answer.content[2:]] == [ARGUMENTS] * 2
    again = message(demo_claude, QUESTION).usage
    assert (again.input_tokens, again.cache_read_input_tokens) == (1, prompt_tokens(answer.usage) - 1)


def prompt_tokens(usage):
    return usage.input_tokens + usage.cache_read_input_tokens


def without_names(block):
    """Signatures and ids are those of one answer."""
    return block.model_dump(exclude={"signature", "id"})


def test_messages_streamed_by_the_helper(demo_claude):
    whole = message(demo_claude, QUESTION)
    with demo_claude.messages.stream(model=MODEL, max_tokens=99, messages=QUESTION, tools=TOOLS) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()
    assert {"thinking", "signature", "text", "input_json"} <= set(kinds)
    assert [without_names(block) for block in streamed.content] == [without_names(block) for block in whole.content]
    assert streamed.stop_reason == "tool_use"
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    assert prompt_tokens(streamed.usage) == prompt_tokens(whole.usage)


def test_messages_go_round(demo_claude):
    answer = message(demo_claude, QUESTION)
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": f"result of {block.id}", "is_error": index == 1}
        for index, block in enumerate(answer.content[2:])
    ]
    history = [*QUESTION, {"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    last = message(demo_claude, history)
    assert last.stop_reason == "end_turn"
    assert last.content[-1].text == f"It said: Error: result of {answer.content[-1].id}"


def test_messages_run_by_the_helper(demo_claude):
    @anthropic.beta_tool
    def read(path: str, n: int) -> str:
        """Reads."""
        return f"{path} {n}"

    runner = demo_claude.beta.messages.tool_runner(model=MODEL, max_tokens=99, messages=QUESTION, tools=[read])
    assert runner.until_done().content[-1].text == 'It said: café "a" 1'


def test_messages_one_call_at_a_time(demo_claude):
    answer = message(demo_claude, QUESTION, tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert [block.name for block in answer.content if block.type == "tool_use"] == ["read"]


def test_messages_without_tools_allowed(demo_claude):
    answer = message(demo_claude, QUESTION, tool_choice={"type": "none"})
    assert answer.stop_reason == "end_turn"
