"""Conversations of the Responses wire, as the official SDK sees them."""

import threading

import openai
import pytest
from test_responses_state import served, text_of, wait_for


@pytest.fixture
def sdk(tmp_path):
    with served(tmp_path / "state") as client:
        yield client


def texts(client, talk):
    return [text_of(item) for item in client.conversations.items.list(talk.id, order="asc", limit=2)]


def test_made_changed_and_erased(sdk):
    talk = sdk.conversations.create(metadata={"a": "b"}, items=[{"role": "user", "content": "Hi"}])
    assert talk.object == "conversation"
    assert sdk.conversations.retrieve(talk.id).to_dict() == talk.to_dict()
    assert sdk.conversations.update(talk.id, metadata={"c": "d"}).metadata == {"c": "d"}
    gone = sdk.conversations.delete(talk.id)
    assert (gone.id, gone.deleted, gone.object) == (talk.id, True, "conversation.deleted")
    with pytest.raises(openai.NotFoundError):
        sdk.conversations.retrieve(talk.id)


def test_items(sdk):
    talk = sdk.conversations.create()
    added = sdk.conversations.items.create(
        talk.id, items=[{"role": "user", "content": word} for word in ("One", "Two", "Three")]
    )
    assert [text_of(item) for item in added.data] == ["One", "Two", "Three"]
    assert texts(sdk, talk) == ["One", "Two", "Three"]
    second = sdk.conversations.items.retrieve(added.data[1].id, conversation_id=talk.id)
    assert second.to_dict() == added.data[1].to_dict()
    assert sdk.conversations.items.delete(second.id, conversation_id=talk.id).id == talk.id
    assert texts(sdk, talk) == ["One", "Three"]
    with pytest.raises(openai.NotFoundError):
        sdk.conversations.items.retrieve(second.id, conversation_id=talk.id)


def test_responses_go_on_with_one_over_a_restart(tmp_path):
    with served(tmp_path / "state") as client:
        talk = client.conversations.create()
        first = client.responses.create(model="demo", input="One", conversation=talk.id)
        assert first.conversation.id == talk.id
        with client.responses.stream(model="demo", input="Two", conversation={"id": talk.id}) as stream:
            second = stream.get_final_response()
    with served(tmp_path / "state") as client:
        third = client.responses.create(model="demo", input="Three", conversation=talk.id, background=True)
        third = wait_for(client, third)
        said = ["One", first.output_text, "Two", second.output_text, "Three", third.output_text]
        assert texts(client, talk) == said
        with pytest.raises(openai.BadRequestError):
            client.responses.create(model="demo", input="x", conversation=talk.id, previous_response_id=third.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.create(model="demo", input="x", conversation="conv_none")


def test_tools_go_round(sdk):
    tools = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}]
    talk = sdk.conversations.create()
    first = sdk.responses.create(model="demo", input="Look.", tools=tools, conversation=talk.id)
    call = next(item for item in first.output if item.type == "function_call")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "a.txt"}
    last = sdk.responses.create(model="demo", input=[result], tools=tools, conversation=talk.id)
    assert last.output_text == "It said: a.txt"
    kinds = [item.type for item in sdk.conversations.items.list(talk.id, order="asc")]
    assert kinds == ["message", "reasoning", "message", "function_call", "function_call_output", "reasoning", "message"]


def test_many_at_once(sdk):
    talk = sdk.conversations.create()
    answers = []

    def work(word):
        made = sdk.responses.create(model="demo", input=word, conversation=talk.id)
        assert made.output_text == f"It is the {word}."
        answers.append((word, made.output_text))

    threads = [threading.Thread(target=work, args=(f"word {i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    all_said = texts(sdk, talk)
    assert sorted(zip(all_said[::2], all_said[1::2], strict=True)) == sorted(answers)
