"""Characters of several tokens, before a server that speaks a script with the real tokenizer: however an answer is cut,
streamed or drawn several times over, no broken character shows."""

import json

import pytest
from sdks import openai_at
from server import scripted

TEXT = "A 👨‍👩‍👧‍👦 family, flags 🇰🇷🇧🇷, 한국어 텍스트, é é, 𝔘𝔫𝔦, ¿qué? 日本。"


@pytest.fixture(scope="module")
def speaker(tmp_path_factory):
    script = tmp_path_factory.mktemp("characters") / "script.json"
    script.write_text(json.dumps({"rules": [{"say": TEXT}]}))
    for url in scripted(script):
        with openai_at(url) as made:
            yield made


@pytest.fixture(scope="module")
def model(speaker):
    return speaker.models.list().data[0].id


def ask(speaker, model, **fields):
    return speaker.chat.completions.create(model=model, messages=[{"role": "user", "content": "?"}], **fields)


def pieces(stream, index=0):
    return [c.delta.content or "" for chunk in stream for c in chunk.choices if c.index == index]


def test_a_cut_at_any_token_ends_before_a_broken_character(speaker, model):
    whole = ask(speaker, model)
    assert whole.choices[0].message.content == TEXT
    before = ""
    for limit in range(1, whole.usage.completion_tokens):
        text = ask(speaker, model, max_tokens=limit).choices[0].message.content
        assert TEXT.startswith(text)
        assert len(text) >= len(before)
        before = text


def test_streams_have_whole_characters_only(speaker, model):
    shown = pieces(ask(speaker, model, stream=True))
    assert "".join(shown) == TEXT
    assert not any("\ufffd" in piece for piece in shown)
    for limit in (3, 4, 5, 6, 7, 8):
        assert TEXT.startswith("".join(pieces(ask(speaker, model, stream=True, max_tokens=limit))))


def test_several_choices_do_not_mix(speaker, model):
    chunks = list(ask(speaker, model, stream=True, n=4))
    assert ["".join(pieces(chunks, index)) for index in range(4)] == [TEXT] * 4


def test_logprobs_have_every_byte(speaker, model):
    entries = ask(speaker, model, logprobs=True, top_logprobs=2).choices[0].logprobs.content
    assert b"".join(bytes(entry.bytes) for entry in entries).decode().startswith(TEXT)
    streamed = [
        entry
        for chunk in ask(speaker, model, logprobs=True, stream=True)
        for choice in chunk.choices
        if choice.logprobs
        for entry in choice.logprobs.content
    ]
    assert [entry.bytes for entry in streamed] == [entry.bytes for entry in entries]


@pytest.mark.parametrize("stop", ["🇧🇷", "텍", "👧‍👦", "é"])
def test_a_stop_of_such_characters_never_shows(speaker, model, stop):
    expected = TEXT[: TEXT.index(stop)]
    assert ask(speaker, model, stop=[stop]).choices[0].message.content == expected
    assert "".join(pieces(ask(speaker, model, stop=[stop], stream=True))) == expected
