"""Prompts without a generation: /tokenize, /detokenize, /apply-template, and what a generation makes of the same."""

import openai
import pytest

TEXT = "The capital of France is café 😀"
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]


def post(client, path, **body):
    return client.post(path, body=body, cast_to=object)


def test_a_text_goes_there_and_back(client):
    ids = post(client, "/tokenize", content=TEXT)["tokens"]
    assert post(client, "/detokenize", tokens=ids)["content"] == TEXT
    pieces = post(client, "/tokenize", content=TEXT, with_pieces=True)["tokens"]
    assert [piece["id"] for piece in pieces] == ids
    data = b"".join(p["piece"].encode() if isinstance(p["piece"], str) else bytes(p["piece"]) for p in pieces)
    assert data.decode() == TEXT


def test_counts_are_those_of_a_generation(client, model):
    counted = post(client, "/tokenize", prompt=TEXT)["count"]
    assert client.completions.create(model=model, prompt=TEXT, max_tokens=1).usage.prompt_tokens == counted
    counted = post(client, "/tokenize", messages=MESSAGES)["count"]
    answer = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=1)
    assert answer.usage.prompt_tokens == counted


def test_a_template_is_applied(client):
    prompt = post(client, "/apply-template", messages=MESSAGES)["prompt"]
    assert "Be brief." in prompt
    ids = post(client, "/tokenize", messages=MESSAGES)["tokens"]
    assert post(client, "/tokenize", content=prompt)["tokens"] == ids
    assert post(client, "/detokenize", tokens=ids)["prompt"] == prompt


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": 1}, "prompt"),
        ("/detokenize", {"tokens": [10**9]}, "tokens"),
        ("/detokenize", {"tokens": ["a"]}, "tokens"),
        ("/apply-template", {"messages": "x"}, "messages"),
    ],
)
def test_what_is_wrong_is_named(client, path, body, param):
    with pytest.raises(openai.BadRequestError) as caught:
        post(client, path, **body)
    assert caught.value.param == param
