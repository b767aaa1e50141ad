"""Chat completions, as the official SDK sees them."""

import concurrent.futures
import time

import openai
import pytest

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def ask(client, model, **fields):
    fields = {"max_tokens": 24, "temperature": 0, "messages": QUESTION, **fields}
    return client.chat.completions.create(model=model, **fields)


def text_of(chunks, index=0):
    choices = [c for chunk in chunks for c in chunk.choices if c.index == index]
    return "".join(c.delta.content or "" for c in choices)


def test_whole_answer(client, model):
    answer = ask(client, model)
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert answer.model == model
    assert answer.system_fingerprint
    assert abs(answer.created - time.time()) < 60
    [choice] = answer.choices
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert choice.finish_reason in ("stop", "length")
    usage = answer.usage
    assert usage.prompt_tokens > 0
    assert 0 < usage.completion_tokens <= 24
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 <= usage.prompt_tokens_details.cached_tokens < usage.prompt_tokens
    assert 0 <= usage.completion_tokens_details.reasoning_tokens <= usage.completion_tokens


def test_stream_says_the_same(client, model):
    whole = ask(client, model)
    chunks = list(ask(client, model, stream=True, stream_options={"include_usage": True}))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({(chunk.id, chunk.created, chunk.model, chunk.system_fingerprint) for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:-1])
    assert text_of(chunks) == whole.choices[0].message.content
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert [c.choices[0].finish_reason for c in chunks[:-1] if c.choices[0].finish_reason] == [
        whole.choices[0].finish_reason
    ]
    assert chunks[-2].choices[0].finish_reason


def test_no_usage_unless_asked_for(client, model):
    assert all(chunk.usage is None and chunk.choices for chunk in ask(client, model, stream=True))


def test_length_and_stop_are_true(client, model):
    cut = ask(client, model, max_tokens=2)
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage.completion_tokens == 2
    assert ask(client, model, max_completion_tokens=2, max_tokens=None).usage.completion_tokens == 2


def test_stop_strings_never_show(client, model):
    whole = ask(client, model).choices[0].message.content
    stop = whole[len(whole) // 2 : len(whole) // 2 + 4]
    for stream in (False, True):
        answer = ask(client, model, stop=[stop, "never seen"], stream=stream)
        text = text_of(list(answer)) if stream else answer.choices[0].message.content
        assert text == whole[: whole.index(stop)]
    assert ask(client, model, stop=[stop]).choices[0].finish_reason == "stop"
    assert ask(client, model, stop="\x07 never seen").choices[0].message.content == whole


def test_choices_come_by_index(client, model):
    fields = {"n": 3, "temperature": 0.8, "seed": 7}
    whole = ask(client, model, **fields)
    assert [choice.index for choice in whole.choices] == [0, 1, 2]
    chunks = list(ask(client, model, stream=True, **fields))
    for index in range(3):
        assert text_of(chunks, index) == whole.choices[index].message.content
        reasons = [c.finish_reason for chunk in chunks for c in chunk.choices if c.index == index and c.finish_reason]
        assert reasons == [whole.choices[index].finish_reason]


def test_a_seed_repeats_the_answer(client, model):
    def draw(seed):
        return ask(client, model, seed=seed, temperature=1.0).choices[0].message.content

    assert draw(11) == draw(11)
    assert len({draw(seed) for seed in range(4)}) > 1


def test_logprobs_belong_to_the_drawn_tokens(client, model):
    whole = ask(client, model, logprobs=True, top_logprobs=4).choices[0]
    entries = whole.logprobs.content
    assert entries
    for entry in entries:
        assert entry.logprob <= 0
        tops = [top.logprob for top in entry.top_logprobs]
        assert len(tops) == 4
        assert tops == sorted(tops, reverse=True)
        assert entry.logprob <= tops[0] + 1e-6
    joined = b"".join(bytes(entry.bytes) for entry in entries).decode(errors="ignore")
    assert joined.startswith(whole.message.content)
    chunks = list(ask(client, model, logprobs=True, top_logprobs=4, stream=True))
    streamed = [e for chunk in chunks for c in chunk.choices if c.logprobs for e in c.logprobs.content]
    assert [e.bytes for e in streamed] == [e.bytes for e in entries]
    assert [e.logprob for e in streamed] == pytest.approx([e.logprob for e in entries], abs=1e-4)


def test_messages_of_all_shapes(client, model):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": " there"}]},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye"},
    ]
    assert ask(client, model, messages=messages).choices[0].message.role == "assistant"


def test_a_second_turn_reuses_the_first(client, model):
    long = [{"role": "user", "content": "Count: " + " ".join(str(i) for i in range(300))}]
    first = ask(client, model, messages=long)
    again = ask(client, model, messages=long)
    assert again.choices[0].message.content == first.choices[0].message.content
    assert again.usage.prompt_tokens_details.cached_tokens > first.usage.prompt_tokens / 2


def test_eight_at_once_get_their_solo_answers(client, model):
    def draw(i):
        messages = [{"role": "user", "content": f"Tell me a fact about the number {i}."}]
        fields = {"messages": messages, "max_tokens": 16 + 4 * i, "seed": i, "temperature": 0.8 if i % 2 else 0}
        if i % 3:
            return ask(client, model, **fields).choices[0].message.content
        return text_of(list(ask(client, model, stream=True, **fields)))

    solo = [draw(i) for i in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = list(pool.map(draw, range(8)))
    assert together == solo


@pytest.mark.parametrize(
    ("fields", "error", "param"),
    [
        ({"temperature": -1}, openai.BadRequestError, "temperature"),
        ({"n": 0}, openai.BadRequestError, "n"),
        ({"max_tokens": 0}, openai.BadRequestError, "max_tokens"),
        ({"logit_bias": {"99999999": 1}}, openai.BadRequestError, "logit_bias"),
        ({"top_logprobs": 3}, openai.BadRequestError, "top_logprobs"),
        ({"messages": []}, openai.BadRequestError, "messages"),
        ({"response_format": {"type": "xml"}}, openai.BadRequestError, "response_format.type"),
        ({"tool_choice": "required"}, openai.BadRequestError, "tool_choice"),
        ({"extra_body": {"adapters": "x"}}, openai.BadRequestError, "adapters"),
        ({"extra_body": {"draft_model": "x"}}, openai.BadRequestError, "draft_model"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_fields_are_named(client, model, fields, error, param, stream):
    with pytest.raises(error) as caught:
        ask(client, model, stream=stream, **fields)
    assert caught.value.param == param
    assert param in caught.value.body["message"]


def test_an_unknown_model_is_not_found(client):
    for name in ("gpt-4", "../../etc/passwd", "x" * 400):
        with pytest.raises(openai.NotFoundError) as caught:
            ask(client, name)
        assert caught.value.code == "model_not_found"


def test_closing_a_stream_cancels_it(client, model, url):
    stream = ask(client, model, max_tokens=2000, stream=True, extra_body={"ignore_eos": True})
    request_id = next(iter(stream)).id
    stream.close()
    deadline = time.monotonic() + 2
    while True:
        listed = client.get("/requests", cast_to=object)
        if all(entry["id"] != request_id for entry in listed["active"]):
            break
        assert time.monotonic() < deadline, "the request still runs"
    [entry] = [entry for entry in listed["recent"] if entry["id"] == request_id]
    assert entry["outcome"] == "cancelled"


def test_a_tiny_top_p_leaves_the_likeliest_token(client, model):
    likeliest = ask(client, model, max_tokens=8, temperature=0).choices[0].message.content
    drawn = ask(client, model, max_tokens=8, temperature=1.5, seed=3, top_p=1e-300)
    assert drawn.choices[0].message.content == likeliest


def test_stop_by_id_ends_the_stream_with_an_error(client, model):
    stream = iter(ask(client, model, max_tokens=2000, stream=True, extra_body={"ignore_eos": True}))
    request_id = next(stream).id
    assert client.post("/stop", body={"request_id": request_id}, cast_to=object)["stopped"] is True
    with pytest.raises(openai.APIError) as caught:
        for _ in stream:
            pass
    assert caught.value.code == "request_cancelled"
    with pytest.raises(openai.ConflictError):
        client.post("/stop", body={"request_id": request_id}, cast_to=object)
    with pytest.raises(openai.NotFoundError):
        client.post("/stop", body={"request_id": "chatcmpl-unknown"}, cast_to=object)
