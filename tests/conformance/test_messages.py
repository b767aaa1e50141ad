"""The Anthropic wire, as the official SDK sees it."""

import anthropic
import pytest

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def ask(claude, model, **fields):
    """The SDK has no temperature of its own."""
    body = {"temperature": fields.pop("temperature", 0)}
    fields = {"max_tokens": 24, "messages": QUESTION, "extra_body": body, **fields}
    return claude.messages.create(model=model, **fields)


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def input_of(usage):
    return usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def test_whole_message(claude, model):
    message = ask(claude, model)
    assert message.type == "message"
    assert message.id.startswith("msg_")
    assert message.role == "assistant"
    assert message.model == model
    assert text_of(message)
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.stop_sequence is None
    assert 0 < message.usage.output_tokens <= 24
    assert input_of(message.usage) > 0


def test_stream_says_the_same(claude, model):
    whole = ask(claude, model)
    body = {"temperature": 0}
    with claude.messages.stream(model=model, max_tokens=24, extra_body=body, messages=QUESTION) as stream:
        pieces = list(stream.text_stream)
        streamed = stream.get_final_message()
    assert "".join(pieces) == text_of(whole)
    assert [block.type for block in streamed.content] == [block.type for block in whole.content]
    assert streamed.stop_reason == whole.stop_reason
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    assert input_of(streamed.usage) == input_of(whole.usage)


def test_events_come_in_order(claude, model):
    events = list(ask(claude, model, stream=True))
    types = [event.type for event in events if event.type != "ping"]
    assert types[0] == "message_start"
    assert types[-2:] == ["message_delta", "message_stop"]
    open_block = None
    for event in events:
        if event.type == "content_block_start":
            assert open_block is None
            open_block = event.index
        elif event.type == "content_block_delta":
            assert event.index == open_block
        elif event.type == "content_block_stop":
            assert event.index == open_block
            open_block = None


def test_count_is_what_a_message_has(claude, model):
    fields = {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [*QUESTION, {"role": "assistant", "content": "Paris."}, {"role": "user", "content": "Sure?"}],
        "tools": [{"name": "look", "description": "Looks", "input_schema": {"type": "object"}}],
    }
    counted = claude.messages.count_tokens(model=model, **fields).input_tokens
    assert counted == input_of(ask(claude, model, max_tokens=1, **fields).usage)


def test_beta_requests_are_taken(claude, model):
    message = claude.beta.messages.create(
        model=model,
        max_tokens=8,
        messages=QUESTION,
        betas=["context-management-2025-06-27", "never-heard-of-2030-01-01"],
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        metadata={"user_id": "someone"},
    )
    assert message.usage.output_tokens <= 8


def test_a_line_that_names_the_session_spoils_no_reuse(claude, model):
    def reused(name):
        system = [
            {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.197.abc; cch={name};"},
            {"type": "text", "text": "Count: " + " ".join(str(i) for i in range(300))},
        ]
        usage = ask(claude, model, max_tokens=1, system=system).usage
        return usage.cache_read_input_tokens / input_of(usage)

    reused("aaaaa")
    assert reused("bbbbb") > 0.5


def test_stop_sequences_are_named_and_never_shown(claude, model):
    whole = text_of(ask(claude, model))
    stop = whole[len(whole) // 2 : len(whole) // 2 + 4]
    message = ask(claude, model, stop_sequences=["\x07 never seen", stop])
    assert text_of(message) == whole[: whole.index(stop)] or not text_of(message).strip()
    assert message.stop_reason == "stop_sequence"
    assert message.stop_sequence == stop


def test_a_cut_is_told(claude, model):
    message = ask(claude, model, max_tokens=2)
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 2


def test_models_in_both_shapes(claude, model, client):
    [listed] = claude.models.list(limit=1000).data
    assert listed.id == model
    assert listed.type == "model"
    assert listed.created_at.year >= 1970
    assert claude.models.retrieve(model).id == model
    assert client.models.list().data[0].object == "model"


@pytest.mark.parametrize(
    ("fields", "error", "name"),
    [
        ({"temperature": -1}, anthropic.BadRequestError, "temperature"),
        ({"messages": []}, anthropic.BadRequestError, "messages"),
        (
            {"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "tool"}},
            anthropic.BadRequestError,
            "tool_choice",
        ),
        ({"model": "claude-none"}, anthropic.NotFoundError, "claude-none"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_fields_are_named(claude, model, fields, error, name, stream):
    with pytest.raises(error) as caught:
        ask(claude, **{"model": model, "stream": stream, **fields})
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] in ("invalid_request_error", "not_found_error")
    assert name in caught.value.body["error"]["message"]


def test_a_prompt_over_the_context_names_both_numbers(claude, model):
    limit = claude.models.retrieve(model).max_input_tokens
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(claude, model, messages=[{"role": "user", "content": "one " * (limit + 10)}])
    assert caught.value.body["error"]["message"].startswith("prompt is too long: ")
    assert f"> {limit - 1} maximum" in caught.value.body["error"]["message"]
