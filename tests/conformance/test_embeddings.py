"""Embeddings, as the official SDK asks for them: it wants base64 and decodes it."""

import math

import openai
import pytest


def embed(client, model, text, **fields):
    return client.embeddings.create(model=model, input=text, **fields)


def length(vector):
    return math.sqrt(sum(x * x for x in vector))


def test_one_input(client, model):
    answer = embed(client, model, "The capital of France")
    assert answer.object == "list"
    assert [(d.object, d.index) for d in answer.data] == [("embedding", 0)]
    assert length(answer.data[0].embedding) == pytest.approx(1, abs=1e-5)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0


def test_many_inputs_come_in_order_and_equal_each_alone(client, model):
    texts = [f"number {i}" for i in range(20)]
    together = embed(client, model, texts)
    assert [d.index for d in together.data] == list(range(20))
    for i in (0, 7, 19):
        alone = embed(client, model, texts[i]).data[0].embedding
        assert together.data[i].embedding == pytest.approx(alone, abs=1e-5)
    assert together.usage.prompt_tokens > 20


def test_numbers_and_base64_are_the_same(client, model):
    coded = embed(client, model, "same").data[0].embedding
    assert embed(client, model, "same", encoding_format="float").data[0].embedding == pytest.approx(coded, abs=1e-7)


def test_token_ids_and_lists_of_them(client, model):
    one = embed(client, model, [1, 2, 3])
    assert one.usage.prompt_tokens == 3
    two = embed(client, model, [[1, 2, 3], [4]])
    assert len(two.data) == 2
    assert two.data[0].embedding == pytest.approx(one.data[0].embedding, abs=1e-5)


def test_dimensions_cut_and_normalise(client, model):
    whole = embed(client, model, "cut").data[0].embedding
    short = embed(client, model, "cut", dimensions=4).data[0].embedding
    assert len(short) == 4
    scale = length(whole[:4])
    assert short == pytest.approx([x / scale for x in whole[:4]], abs=1e-5)


@pytest.mark.parametrize("text", ["", [], [""], [10**9], ["a"] * 2049])
def test_bad_inputs_are_refused(client, model, text):
    with pytest.raises(openai.BadRequestError) as caught:
        embed(client, model, text)
    assert caught.value.param.startswith("input")


def test_bad_fields_are_named(client, model):
    for field, value in (("pooling", "max"), ("dimensions", 0), ("encoding_format", "int8")):
        with pytest.raises(openai.BadRequestError) as caught:
            client.post("/embeddings", body={"input": "x", "model": model, field: value}, cast_to=object)
        assert caught.value.param == field


def test_pooling(client, model):
    last = embed(client, model, "one two three", extra_body={"pooling": "last"}).data[0].embedding
    assert length(last) == pytest.approx(1, abs=1e-5)
