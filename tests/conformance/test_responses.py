"""The Responses wire, as the official SDK sees it. Tools are asked of a scripted model that calls them."""

import json

import openai
import pytest

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}
TOOLS = [
    {"type": "function", "name": "read", "parameters": SCHEMA},
    {"type": "custom", "name": "patch", "description": "Edits"},
    {"type": "web_search"},
]


def ask(client, model, **fields):
    fields = {"max_output_tokens": 24, "temperature": 0, "input": "What is the capital of France?", **fields}
    return client.responses.create(model=model, **fields)


def test_whole_response(client, model):
    response = ask(client, model)
    assert response.id.startswith("resp_")
    assert response.status in ("completed", "incomplete")
    assert response.output_text
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_stream_says_the_same(client, model):
    whole = ask(client, model)
    with client.responses.stream(
        model=model, max_output_tokens=24, temperature=0, input="What is the capital of France?"
    ) as stream:
        events = list(stream)
        streamed = stream.get_final_response() if whole.status == "completed" else events[-1].response
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    assert streamed.output_text == whole.output_text
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text


def test_a_probe_with_nothing(client, model):
    assert ask(client, model, input=[], max_output_tokens=1).usage.output_tokens == 1


@pytest.mark.parametrize(
    ("fields", "error", "param"),
    [
        ({"previous_response_id": "resp_none"}, openai.NotFoundError, "previous_response_id"),
        ({"tool_choice": "required"}, openai.BadRequestError, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, openai.BadRequestError, "text.format.type"),
    ],
)
def test_bad_fields_are_named(client, model, fields, error, param):
    with pytest.raises(error) as caught:
        ask(client, model, **fields)
    assert caught.value.param == param


def test_calls_whole_and_streamed(demo):
    response = demo.responses.create(model="demo", input="Look.", tools=TOOLS)
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "custom_tool_call"]
    assert json.loads(response.output[2].arguments) == {"path": 'café "a"', "n": 1}
    with demo.responses.stream(model="demo", input="Look.", tools=TOOLS) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_response()
    assert "response.function_call_arguments.delta" in kinds
    assert "response.reasoning_text.delta" in kinds
    assert [item.type for item in streamed.output] == [item.type for item in response.output]
    assert streamed.output[2].arguments == response.output[2].arguments


def test_goes_round(demo):
    response = demo.responses.create(model="demo", input="Look.", tools=TOOLS)
    history = [{"role": "user", "content": "Look."}]
    history += [item.model_dump(exclude_none=True) for item in response.output]
    read, patch = (item.call_id for item in response.output[2:])
    history.append({"type": "function_call_output", "call_id": read, "output": "a.txt"})
    history.append(
        {"type": "custom_tool_call_output", "call_id": patch, "output": [{"type": "input_text", "text": "done"}]}
    )
    last = demo.responses.create(model="demo", input=history, tools=TOOLS)
    assert last.output_text == "It said: done"
