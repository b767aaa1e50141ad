"""Answers that must have a form or calls, on each wire, by the model itself; and plain requests beside them."""

import concurrent.futures
import json
import random
import re
import time

import jsonschema
import openai
import pytest
from random_weights import random_checkpoint
from sdks import openai_at
from server import BINARY, running

QUESTION = [{"role": "user", "content": "Tell me about a town."}]
TOWN = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "size": {"type": "integer", "minimum": 1, "maximum": 999},
        "kind": {"enum": ["port", "market"]},
    },
    "required": ["name", "size", "kind"],
    "additionalProperties": False,
}
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
TOOLS = [
    {"type": "function", "function": {"name": "found", "parameters": TOWN}},
    {"type": "function", "function": {"name": "leave", "parameters": NOTHING}},
]


def ask(client, model, **fields):
    fields = {"temperature": 1.5, "max_tokens": 200, "seed": 7} | fields
    return client.chat.completions.create(model=model, messages=QUESTION, **fields)


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}


def random_schema(rng, depth=0):
    """A schema whose values are short, so that answers end."""
    kinds = ["integer", "boolean", "string", "enum", "null"] + (["object", "array", "anyOf"] * 2 if depth < 2 else [])
    kind = rng.choice(kinds)
    if kind == "integer":
        low = rng.randint(-50, 50)
        return {"type": "integer", "minimum": low, "maximum": low + rng.randint(0, 500)}
    if kind == "string":
        if rng.random() < 0.3:
            return {"type": "string", "pattern": rng.choice(["^[a-f]{2,5}$", "^(north|south)-[0-9]{1,3}$"])}
        return {"type": "string", "maxLength": rng.randint(0, 8)}
    if kind == "enum":
        return {"enum": rng.sample([None, True, 3, -2.5, "a b", 'q"', ["x"], {"y": 1}], rng.randint(1, 4))}
    if kind == "array":
        return {"type": "array", "items": random_schema(rng, depth + 1), "minItems": rng.randint(0, 1), "maxItems": 3}
    if kind == "anyOf":
        return {"anyOf": [random_schema(rng, depth + 1) for _ in range(2)]}
    if kind == "object":
        return random_object(rng, depth)
    return {"type": kind}


def random_object(rng, depth=0):
    names = rng.sample(["id", "naïve", "to do", "x-y", "n"], rng.randint(1, 3))
    return {
        "type": "object",
        "properties": {name: random_schema(rng, depth + 1) for name in names},
        "required": [name for name in names if rng.random() < 0.7],
        "additionalProperties": False,
    }


def check_random_schemas(client, model, rng, count=24, enough=0.75, bound_tokens=400):
    """Bound answers validate, and plain ones beside them are what they are alone."""
    schemas = [random_object(rng) for _ in range(count)]

    def plain(seed):
        choice = ask(client, model, seed=seed, max_tokens=60).choices[0]
        return choice.finish_reason, choice.message.content

    def bound(schema):
        return ask(client, model, response_format=schema_format(schema), max_tokens=bound_tokens).choices[0]

    alone = [plain(seed) for seed in range(6)]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        jobs = [(schema, pool.submit(bound, schema)) for schema in schemas]
        beside = [pool.submit(plain, seed) for seed in range(6)]
        answers = [(schema, job.result()) for schema, job in jobs]
        assert [job.result() for job in beside] == alone
    assert sum(answer.finish_reason == "stop" for _, answer in answers) > len(answers) * enough
    for schema, answer in answers:
        if answer.finish_reason == "stop":  # others were cut off at max_tokens
            jsonschema.validate(json.loads(answer.message.content), schema)


def test_random_schemas_always_validate_and_plain_rows_beside_them_do_not_change(client, model):
    check_random_schemas(client, model, random.Random(11))


@pytest.mark.parametrize("ranks", [1, 2])
def test_random_schemas_always_validate_on_random_weights(tmp_path, ranks):
    folder = random_checkpoint(tmp_path / "random", seed=5)
    words = [BINARY, "serve", str(folder), "--port", "0", "--ranks", str(ranks)]
    for url in running(words):
        client = openai_at(url)
        (model,) = [each.id for each in client.models.list().data]
        check_random_schemas(client, model, random.Random(31 + ranks), count=40)


def test_any_object_without_a_word_of_json_in_the_prompt(client, model):
    for seed in range(4):
        choice = ask(client, model, response_format={"type": "json_object"}, temperature=0.7, seed=seed).choices[0]
        assert choice.message.content.startswith("{")
        if choice.finish_reason == "stop":
            assert isinstance(json.loads(choice.message.content), dict)


def test_patterns_choices_and_grammars(client, model):
    def text(**extra):
        return ask(client, model, extra_body=extra).choices[0].message.content

    assert re.fullmatch(r"[A-Z][a-z]{2,6}, \d{4}/\d", text(guided_regex=r"[A-Z][a-z]{2,6}, \d{4}/\d"))
    assert text(guided_choice=["yes", 'no "way"', "päron"]) in ["yes", 'no "way"', "päron"]
    assert re.fullmatch(r"(tic|tac){2}\.", text(guided_grammar='start: two "."\ntwo: w w\nw: "tic" | "tac"'))
    jsonschema.validate(json.loads(text(guided_json=TOWN)), TOWN)


def test_calls_are_forced_of_any_tool_or_one(client, model):
    for choice, names in [
        ("required", {"found", "leave"}),
        ({"type": "function", "function": {"name": "found"}}, {"found"}),
        ({"type": "function", "function": {"name": "leave"}}, {"leave"}),
    ]:
        for stream in (False, True):
            calls = []
            if stream:
                with client.chat.completions.stream(
                    model=model, messages=QUESTION, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False,
                    temperature=1.5, seed=3, max_tokens=400,
                ) as events:  # fmt: skip
                    for _ in events:
                        pass
                    answer = events.get_final_completion().choices[0]
            else:
                answer = ask(client, model, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False, max_tokens=400)
                answer = answer.choices[0]
            calls = answer.message.tool_calls
            assert answer.finish_reason == "tool_calls"
            assert len(calls) == 1
            assert calls[0].function.name in names
            if calls[0].function.name == "found":
                jsonschema.validate(json.loads(calls[0].function.arguments), TOWN)


MOVES = 'start: move (";" move)*\nmove: "go" WS_INLINE? STEP\nSTEP: ("n" | "s") DIGIT~1..2\n' + (
    "%import common.DIGIT\n%import common.WS_INLINE -> WS_INLINE\n"
)


def custom_tool(syntax, definition):
    grammar = {"type": "grammar", "syntax": syntax, "definition": definition}
    return {"type": "custom", "name": "steer", "description": "Steers", "format": grammar}


def steered_response(client, model, syntax, definition, seed):
    """What the tool was given; None where the limit cut it."""
    answer = client.responses.create(
        model=model,
        input="Steer.",
        tools=[custom_tool(syntax, definition)],
        tool_choice={"type": "custom", "name": "steer"},
        parallel_tool_calls=False,
        max_output_tokens=200,
        temperature=1.5,
        extra_body={"seed": seed},
    )
    calls = [item for item in answer.output if item.type == "custom_tool_call"]
    return calls[0].input if answer.status == "completed" else None


def steered_chat(client, model, syntax, definition, seed):
    """The same, whole and streamed."""
    form = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    fields = {
        "model": model,
        "messages": [{"role": "user", "content": "Steer."}],
        "tools": [{"type": "custom", "custom": {"name": "steer", "description": "Steers", "format": form}}],
        "tool_choice": {"type": "custom", "custom": {"name": "steer"}},
        "parallel_tool_calls": False,
        "max_tokens": 200,
        "temperature": 1.5,
        "seed": seed,
    }
    choice = client.chat.completions.create(**fields).choices[0]
    text, finish = "", None
    for chunk in client.chat.completions.create(**fields, stream=True):
        for call in chunk.choices[0].delta.tool_calls or []:
            text += call.custom["input"]
        finish = chunk.choices[0].finish_reason
    assert finish == choice.finish_reason
    calls = choice.message.tool_calls or []
    assert text == "".join(call.custom.input for call in calls)
    return text if finish == "tool_calls" else None


@pytest.mark.parametrize("steered", [steered_response, steered_chat])
@pytest.mark.parametrize(
    ("syntax", "definition", "expected"),
    [
        ("regex", r'[ab]{2,4}"\n(x|\\)', r'[ab]{2,4}"\n(x|\\)'),
        ("lark", MOVES, r"go[ \t]*[ns][0-9]{1,2}(;go[ \t]*[ns][0-9]{1,2})*"),
    ],
)
def test_what_a_custom_tool_takes_fits_its_grammar(client, model, steered, syntax, definition, expected):
    texts = [steered(client, model, syntax, definition, seed) for seed in range(6)]
    complete = [text for text in texts if text is not None]
    assert complete
    for text in complete:
        assert re.fullmatch(expected, text), text


def test_grammars_of_custom_tools_are_refused_or_told_of(client, model):
    def create(definition):
        return client.responses.create(
            model=model, input="Steer.", tools=[custom_tool("lark", definition)], max_output_tokens=1
        )

    with pytest.raises(openai.BadRequestError) as refused:
        create("start: /a(?=b)/")
    assert refused.value.param == "tools[0].format.definition"
    assert "lookaround" in str(refused.value)
    nested = create('start: "(" start ")" | "x"')
    assert "grammar_not_enforced" in [warning["code"] for warning in nested.model_extra["warnings"]]


def test_a_forced_call_that_is_cut_off_shows_no_markup(client, claude, model):
    for limit in [*range(1, 12), 16, 20]:
        cut = ask(client, model, tools=TOOLS, tool_choice="required", max_tokens=limit).choices[0]
        assert not cut.message.content
        if cut.finish_reason == "length":
            assert cut.model_extra.get("finish_detail", ["cut_off_call"]) == ["cut_off_call"]
        for call in cut.message.tool_calls or []:
            assert isinstance(json.loads(call.function.arguments), dict)
        message = claude.messages.create(
            model=model,
            max_tokens=limit,
            messages=QUESTION,
            tools=[{"name": "found", "input_schema": TOWN}],
            tool_choice={"type": "any"},
            extra_body={"temperature": 1},
        )
        assert not [block for block in message.content if block.type == "text"]


def test_seeds_choices_logprobs_and_stops_are_as_without_a_grammar(client, model):
    fields = {"response_format": schema_format(TOWN), "n": 3, "logprobs": True, "top_logprobs": 2}
    first = ask(client, model, **fields)
    again = ask(client, model, **fields)
    texts = [choice.message.content for choice in first.choices]
    assert texts == [choice.message.content for choice in again.choices]
    assert len(set(texts)) == 3
    for choice in first.choices:
        jsonschema.validate(json.loads(choice.message.content), TOWN)
        spelled = b"".join(bytes(token.bytes) for token in choice.logprobs.content)
        assert spelled.decode() == choice.message.content
        # Those of the model itself, which may like what is not allowed better.
        assert any(token.logprob < min(t.logprob for t in token.top_logprobs) for token in choice.logprobs.content)
    stopped = ask(client, model, response_format=schema_format(TOWN), stop=['"size"'])
    assert stopped.choices[0].finish_reason == "stop"
    assert '"size"' not in stopped.choices[0].message.content
    cut = ask(client, model, response_format=schema_format(TOWN), max_tokens=4)
    assert cut.choices[0].finish_reason == "length"
    late = ask(client, model, response_format=schema_format(TOWN), extra_body={"min_tokens": 190})
    jsonschema.validate(json.loads(late.choices[0].message.content), TOWN)


def test_those_that_end_early_leave_their_neighbours_alone(client, model):
    def one(i):
        form = {"response_format": schema_format(TOWN)} if i % 2 else {}
        choice = ask(client, model, seed=i, max_tokens=[3, 5, 8, 13, 21, 55, 90, 140][i], **form).choices[0]
        return choice.message.content, choice.finish_reason

    alone = [one(i) for i in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == alone


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("stop", "before"),
    [
        (["beta gamma"], "alpha "),
        (["beta x", "gamma x", "gamma d", "gamma delta"], "alpha beta "),
        (["ta gam"], "alpha be"),
        (["delta DEFGHIJ"], "alpha beta gamma delta DEFGHI"),
    ],
)
def test_stops_across_tokens_end_a_form(client, model, stop, before, stream):
    text = "alpha beta gamma delta DEFGHI"
    word = {"type": "object", "properties": {"w": {"const": text}}, "required": ["w"], "additionalProperties": False}
    for form in ({"extra_body": {"guided_regex": text}}, {"response_format": schema_format(word)}):
        answer = ask(client, model, stop=stop, stream=stream, **form)
        chunks = list(answer) if stream else [answer]
        parts = [choice for chunk in chunks for choice in chunk.choices]
        said = "".join((part.delta if stream else part.message).content or "" for part in parts)
        assert parts[-1].finish_reason == "stop"
        if "response_format" in form and before == text:
            assert json.loads(said) == {"w": text}
        else:
            assert said.endswith(before)
            assert said.count("alpha") == 1


def test_other_wires(client, claude, model):
    response = client.responses.create(
        model=model, input="A town.", text={"format": {"type": "json_schema", "name": "n", "schema": TOWN}},
        temperature=1.5, max_output_tokens=200,
    )  # fmt: skip
    jsonschema.validate(json.loads(response.output_text), TOWN)
    tool = {"type": "function", "name": "found", "parameters": TOWN, "strict": True}
    called = client.responses.create(
        model=model, input="A town.", tools=[tool], tool_choice={"type": "function", "name": "found"},
        temperature=1.5, max_output_tokens=400,
    )  # fmt: skip
    call = next(item for item in called.output if item.type == "function_call")
    jsonschema.validate(json.loads(call.arguments), TOWN)

    form = {"format": {"type": "json_schema", "schema": TOWN}}
    message = claude.messages.create(
        model=model, messages=QUESTION, max_tokens=200, extra_body={"output_config": form, "temperature": 1}
    )
    jsonschema.validate(json.loads(message.content[0].text), TOWN)
    tools = [{"name": "found", "input_schema": TOWN}, {"name": "leave", "input_schema": NOTHING}]
    for choice, names in [({"type": "any"}, {"found", "leave"}), ({"type": "tool", "name": "found"}, {"found"})]:
        message = claude.messages.create(
            model=model, messages=QUESTION, max_tokens=400, tools=tools,
            tool_choice=choice | {"disable_parallel_tool_use": True}, extra_body={"temperature": 1},
        )  # fmt: skip
        assert message.stop_reason == "tool_use"
        blocks = [block for block in message.content if block.type == "tool_use"]
        assert [block.name in names for block in blocks] == [True]
        if blocks[0].name == "found":
            jsonschema.validate(blocks[0].input, TOWN)


HOSTILE = [
    {"type": "string", "pattern": "^+[a-z]$"},
    {"type": "string", "pattern": "(?<=x)y"},
    {"type": "string", "pattern": "(" * 5000 + ")" * 5000},
    {"type": "string", "pattern": "(a{1000}){1000}"},
    {"$ref": "#"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    {"properties": {"foo": "bar"}},
    {"not": {"type": "string"}},
    {"type": "nonsense"},
    {"allOf": [{"type": "string", "pattern": f"^.*{i}.*$"} for i in range(40)]},
    {"type": "object", "properties": {f"p{i}": {"type": "string", "pattern": f"^[a-z]{{3}}{i}$"} for i in range(1500)}},
]


@pytest.mark.parametrize("schema", HOSTILE, ids=lambda schema: json.dumps(schema)[:40])
def test_what_is_hostile_or_not_offered_is_refused_at_once(client, model, schema):
    start = time.monotonic()
    with pytest.raises(openai.BadRequestError) as refusal:
        ask(client, model, response_format=schema_format(schema))
    assert time.monotonic() - start < 1
    assert refusal.value.param == "response_format"
    assert len(refusal.value.message) < 3000
    assert ask(client, model, max_tokens=2).choices[0].finish_reason == "length"


@pytest.mark.parametrize(
    "extra",
    [
        {"guided_grammar": "start: " + "(" * 60_000 + '"a"' + ")" * 60_000},
        {"guided_grammar": 'root ::= "a"'},
        {"guided_grammar": "start: missing"},
        {"guided_regex": "(" * 5000},
        {"guided_regex": "((a{900}){900}){900}"},
        {"guided_regex": "a", "ignore_eos": True},
    ],
    ids=lambda extra: str(extra)[:40],
)
def test_hostile_grammars_are_refused_at_once(client, model, extra):
    start = time.monotonic()
    with pytest.raises(openai.BadRequestError):
        ask(client, model, extra_body=extra)
    assert time.monotonic() - start < 1
    assert ask(client, model, max_tokens=2).choices[0].finish_reason == "length"


def members(count, **more):
    return {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(count)}} | more


def chain(length):
    steps = {f"d{i}": {"properties": {"n": {"$ref": f"#/$defs/d{i + 1}"}}} for i in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": steps | {f"d{length}": {"type": "string"}}}


def test_hostile_schemas_eight_at_once_are_each_refused_within_a_second(client, model):
    every = members(1500, required=[f"p{i}" for i in range(1500)])
    schemas = [
        members(2000),
        {"properties": {"a": every, "b": every, "c": every}},
        {"anyOf": [members(1, required=["p0"], title=str(i)) for i in range(3000)]},
        chain(2000),  # deeper than a stack
        {"type": "object", "required": [f"r{i}" for i in range(4100)]},
        {"type": "integer", "multipleOf": -3},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"type": "string", "pattern": "[^\\x00-\\U0010ffff]x"},
    ]

    def refused(schema):
        start = time.monotonic()
        with pytest.raises(openai.BadRequestError) as refusal:
            ask(client, model, response_format=schema_format(schema))
        return time.monotonic() - start, refusal.value

    ask(client, model, response_format=schema_format(TOWN), max_tokens=2)  # the vocabulary is there
    with concurrent.futures.ThreadPoolExecutor(len(schemas)) as pool:
        for seconds, refusal in pool.map(refused, schemas):
            assert refusal.param == "response_format"
            assert seconds < 1
            assert 20 < len(refusal.message) < 500
    assert ask(client, model, max_tokens=2).choices[0].finish_reason == "length"
