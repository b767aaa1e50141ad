"""The official SDKs in Python, by every helper of theirs, against a scripted server (sdk.json); node/ has those in Node."""

import asyncio
import json
from typing import Literal

import anthropic
import openai
import pydantic
import pytest
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner
from sdks import anthropic_at, openai_at
from server import ROOT, scripted

MODEL = "default_model"
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
TASK = [{"role": "user", "content": "What time is it in Oslo?"}]
AS_JSON = [{"role": "user", "content": "A city, as JSON"}]
BROKEN = [{"role": "user", "content": "Break"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CITIES = [{"city": "Oslo"}, {"city": "Bergen"}]
TOLD = "In Oslo it is 12:30."


class City(pydantic.BaseModel):
    city: str
    size: int


class GetTime(pydantic.BaseModel):
    """Tells the time."""

    city: Literal["Oslo", "Bergen"]


def time_in(city):
    return {"Oslo": "11:00", "Bergen": "12:30"}[city]


@pytest.fixture(scope="module")
def sdk_url():
    yield from scripted(ROOT / "tests/conformance/sdk.json", "--reasoning-dialect", "think")


@pytest.fixture(scope="module")
def gpt(sdk_url):
    with openai_at(sdk_url) as made:
        yield made


@pytest.fixture(scope="module")
def claude(sdk_url):
    with anthropic_at(sdk_url) as made:
        yield made


@pytest.fixture(scope="module")
def structured(gpt):
    """Skips where the server does not hold answers to a schema."""
    try:
        gpt.chat.completions.create(model=MODEL, messages=AS_JSON, response_format={"type": "json_object"})
    except openai.BadRequestError as error:
        assert error.param == "response_format"
        pytest.skip("the server does not hold answers to schemas")


# Chat completions.


def test_chat_stream_helper(gpt):
    with gpt.chat.completions.stream(model=MODEL, messages=QUESTION) as stream:
        events = list(stream)
        completion = stream.get_final_completion()
    assert completion.choices[0].message.content == "Paris, I think."
    assert "".join(event.delta for event in events if event.type == "content.delta") == "Paris, I think."
    assert [event.content for event in events if event.type == "content.done"] == ["Paris, I think."]


def test_chat_stream_of_logprobs(gpt):
    with gpt.chat.completions.stream(model=MODEL, messages=QUESTION, logprobs=True) as stream:
        kinds = [event.type for event in stream]
    assert "logprobs.content.delta" in kinds
    assert "logprobs.content.done" in kinds


def test_chat_parses_calls(gpt):
    tool = openai.pydantic_function_tool(GetTime, name="get_time")
    completion = gpt.chat.completions.parse(model=MODEL, messages=TASK, tools=[tool])
    parsed = [call.function.parsed_arguments for call in completion.choices[0].message.tool_calls]
    assert parsed == [GetTime(city="Oslo"), GetTime(city="Bergen")]


def test_chat_parses_answers(gpt, structured):
    fields = {"model": MODEL, "messages": AS_JSON, "response_format": City}
    assert gpt.chat.completions.parse(**fields).choices[0].message.parsed == City(city="Oslo", size=7)
    with gpt.chat.completions.stream(**fields) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == City(city="Oslo", size=7)


def test_chat_raw_and_streaming_responses(gpt):
    raw = gpt.chat.completions.with_raw_response.create(model=MODEL, messages=QUESTION)
    assert raw.headers["x-request-id"] == raw.parse().id
    with gpt.chat.completions.with_streaming_response.create(model=MODEL, messages=QUESTION) as response:
        assert json.loads("".join(response.iter_text()))["object"] == "chat.completion"


def test_chat_errors_in_streams(gpt):
    stream = gpt.chat.completions.stream(model=MODEL, messages=BROKEN)
    with pytest.raises(openai.APIError, match="the disk is gone"), stream as events:
        events.until_done()


def test_completions(gpt):
    assert gpt.completions.create(model=MODEL, prompt="Endless", max_tokens=3).usage.completion_tokens == 3


# Responses.


def function_tool():
    return {"type": "function", "name": "get_time", "parameters": SCHEMA, "strict": False}


def test_responses_stream_helper(gpt):
    with gpt.responses.stream(model=MODEL, input=TASK, tools=[function_tool()]) as stream:
        events = list(stream)
        response = stream.get_final_response()
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert response.output_text == "Let me see."
    ended = [event.arguments for event in events if event.type == "response.function_call_arguments.done"]
    assert [json.loads(arguments) for arguments in ended] == CITIES


def test_responses_parse_calls(gpt):
    tool = openai.pydantic_responses_function_tool(GetTime, name="get_time")
    response = gpt.responses.parse(model=MODEL, input=TASK, tools=[tool])
    calls = [item for item in response.output if item.type == "function_call"]
    assert [call.parsed_arguments for call in calls] == [GetTime(city="Oslo"), GetTime(city="Bergen")]


def test_responses_parse_answers(gpt, structured):
    assert gpt.responses.parse(model=MODEL, input=AS_JSON, text_format=City).output_parsed == City(city="Oslo", size=7)
    with gpt.responses.stream(model=MODEL, input=AS_JSON, text_format=City) as stream:
        assert stream.get_final_response().output_parsed == City(city="Oslo", size=7)


@pytest.mark.parametrize("options", [{}, {"stream": True}, {"stream": True, "eager": True}], ids=str)
def test_responses_tool_runner(gpt, options):
    function = RegisteredFunction(function_tool(), lambda arguments: time_in(arguments["city"]))
    runner = ResponsesToolRunner(functions=[function])
    assert runner.run(gpt, {"model": MODEL, "input": TASK, "store": False}, **options).output_text == TOLD


# Messages.


def test_messages_stream_helper(claude):
    tools = [{"name": "get_time", "input_schema": SCHEMA}]
    with claude.messages.stream(model=MODEL, max_tokens=200, messages=TASK, tools=tools) as stream:
        events = list(stream)
        message = stream.get_final_message()
        assert stream.get_final_text() == "Let me see."
    assert {"text", "thinking", "signature", "input_json", "content_block_stop"} <= {event.type for event in events}
    assert [block.input for block in message.content[2:]] == CITIES


def test_messages_text_stream(claude):
    with claude.messages.stream(model=MODEL, max_tokens=200, messages=QUESTION) as stream:
        assert "".join(stream.text_stream) == "Paris, I think."


def test_messages_parse_answers(claude):
    fields = {"model": MODEL, "max_tokens": 200, "messages": AS_JSON, "output_format": City}
    assert claude.messages.parse(**fields).parsed_output == City(city="Oslo", size=7)
    assert claude.beta.messages.parse(**fields).parsed_output == City(city="Oslo", size=7)
    with claude.messages.stream(**fields) as stream:
        assert stream.get_final_message().parsed_output == City(city="Oslo", size=7)


@pytest.mark.parametrize("stream", [False, True])
def test_messages_tool_runner(claude, stream):
    @anthropic.beta_tool
    def get_time(city: str) -> str:
        """Tells the time."""
        return time_in(city)

    runner = claude.beta.messages.tool_runner(
        model=MODEL, max_tokens=200, messages=TASK, tools=[get_time], stream=stream
    )
    assert runner.until_done().content[-1].text == TOLD


def test_messages_count(claude):
    tools = [{"name": "get_time", "input_schema": SCHEMA}]
    counted = claude.messages.count_tokens(model=MODEL, messages=TASK, tools=tools).input_tokens
    usage = claude.messages.create(model=MODEL, max_tokens=200, messages=TASK, tools=tools).usage
    assert counted == usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def test_messages_errors_in_streams(claude):
    stream = claude.messages.stream(model=MODEL, max_tokens=200, messages=BROKEN)
    with pytest.raises(anthropic.APIError, match="the disk is gone"), stream as events:
        events.until_done()


async def ask_claude(url):
    made = anthropic.AsyncAnthropic(base_url=url, api_key="none")
    async with made, made.messages.stream(model=MODEL, max_tokens=99, messages=QUESTION) as stream:
        return await stream.get_final_text()


async def ask_responses(url):
    made = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    async with made, made.responses.stream(model=MODEL, input=QUESTION) as stream:
        return (await stream.get_final_response()).output_text


async def ask_chat(url):
    made = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    async with made, made.chat.completions.stream(model=MODEL, messages=QUESTION) as stream:
        return (await stream.get_final_completion()).choices[0].message.content


@pytest.mark.parametrize("ask", [ask_chat, ask_responses, ask_claude])
def test_asynchronous_clients(sdk_url, ask):
    assert asyncio.run(ask(sdk_url)) == "Paris, I think."
