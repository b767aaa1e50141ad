"""Text completions, models, health and metrics."""

import time
import urllib.error
import urllib.request

import openai
import pytest


def complete(client, model, **fields):
    fields = {"prompt": "The capital of France is", "max_tokens": 8, "temperature": 0, **fields}
    return client.completions.create(model=model, **fields)


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_completion_whole_and_streamed(client, model):
    whole = complete(client, model)
    assert whole.object == "text_completion"
    assert whole.id.startswith("cmpl-")
    assert whole.choices[0].text
    assert whole.usage.completion_tokens <= 8
    chunks = list(complete(client, model, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.text for chunk in chunks for c in chunk.choices) == whole.choices[0].text
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens


def test_completion_echo(client, model):
    prompt = "The capital of France is"
    plain = complete(client, model).choices[0].text
    assert complete(client, model, echo=True).choices[0].text == prompt + plain


def test_completion_of_token_ids(client, model):
    assert complete(client, model, prompt=[1, 2, 3]).usage.prompt_tokens == 3


def test_completion_logprobs_have_the_older_shape(client, model):
    choice = complete(client, model, logprobs=3).choices[0]
    shape = choice.logprobs
    assert len(shape.tokens) == len(shape.token_logprobs) == len(shape.text_offset) == len(shape.top_logprobs) > 0
    assert shape.text_offset[0] == 0
    assert all(logprob <= 0 for logprob in shape.token_logprobs)
    assert "".join(shape.tokens).startswith(choice.text)
    chunks = list(complete(client, model, logprobs=3, stream=True))
    offsets = [o for chunk in chunks for c in chunk.choices if c.logprobs for o in c.logprobs.text_offset]
    assert offsets == shape.text_offset


@pytest.mark.parametrize("prompt", ["", [], [10**9], ["a", "b"]])
def test_bad_prompts_are_refused(client, model, prompt):
    with pytest.raises(openai.BadRequestError) as caught:
        complete(client, model, prompt=prompt)
    assert caught.value.param == "prompt"


def test_a_prompt_over_the_context_names_both_numbers(client, model):
    limit = client.models.list().data[0].context_length
    with pytest.raises(openai.BadRequestError) as caught:
        complete(client, model, prompt=[5] * (limit + 1))
    assert caught.value.code == "context_length_exceeded"
    assert str(limit) in caught.value.body["message"]
    assert str(limit + 1) in caught.value.body["message"]


def test_models(client, model):
    listed = client.models.list().data
    assert [entry.id for entry in listed] == [model]
    entry = client.models.retrieve(model)
    assert entry.object == "model"
    assert entry.owned_by
    assert 0 < entry.context_length <= entry.native_context_length or entry.native_context_length == 0
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_health_and_metrics(client, model, url):
    assert get(f"{url}/health/live")[0] == 200
    assert get(f"{url}/health/ready")[0] == 200
    assert get(f"{url}/health")[0] == 200
    complete(client, model, extra_body={"frobnicate": 1})
    # The request's record is closed before its answer is sent, but other tests' may still be open.
    text = get(f"{url}/metrics")[1]
    assert 'tandem_requests_total{endpoint="completions",outcome="finished"}' in text
    assert 'tandem_ignored_fields_total{field="frobnicate"}' in text
    assert "tandem_first_token_seconds_count" in text


def test_requests_show_phases_and_counts(client, model):
    before = time.time()
    answer = complete(client, model)
    recent = client.get("/requests", cast_to=object)["recent"]
    entry = next(entry for entry in recent if entry["id"] == answer.id)
    assert entry["outcome"] == "finished"
    assert entry["prompt_tokens"] == answer.usage.prompt_tokens
    assert entry["emitted_tokens"] == answer.usage.completion_tokens
    assert entry["created"] >= int(before)
    for phase in ("queue_ms", "prefill_ms", "first_token_ms", "decode_ms", "elapsed_ms"):
        assert entry[phase] >= 0


def test_unknown_paths_and_methods(url):
    assert get(f"{url}/v1/nothing")[0] == 404
    assert get(f"{url}/v1/chat/completions")[0] == 405
