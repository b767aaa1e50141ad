"""Responses that are kept, as the official SDK sees them: of a scripted model, and of the real server."""

import contextlib
import os
import resource
import subprocess
import threading
import time

import openai
import pytest
from conftest import command, demo_command
from sdks import openai_at
from server import killed, running

LONG = {"ignore_eos": True}  # a model goes on to its limit


@contextlib.contextmanager
def served(folder):
    """A client of a server over this state folder."""
    started = contextlib.contextmanager(running)(demo_command("--state-dir", str(folder)))
    with started as url, openai_at(url, timeout=60) as client:
        yield client


@pytest.fixture
def sdk(tmp_path):
    with served(tmp_path / "state") as client:
        yield client


def text_of(item):
    return "".join(part.text for part in item.content)


def wait_for(client, response):
    limit = time.monotonic() + 30
    while response.status in ("queued", "in_progress"):
        assert time.monotonic() < limit, f"still {response.status}"
        time.sleep(0.05)
        response = client.responses.retrieve(response.id)
    return response


def test_create_retrieve_delete(sdk):
    made = sdk.responses.create(model="demo", input="Hi", store=True, metadata={"a": "b"}, instructions="Be brief")
    found = sdk.responses.retrieve(made.id)
    assert found.to_dict() == made.to_dict()
    assert found.metadata == {"a": "b"}
    assert found.instructions == "Be brief"
    assert found.usage.input_tokens_details.cached_tokens == 0
    assert found.usage.output_tokens_details.reasoning_tokens == 0
    sdk.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.responses.retrieve(made.id)
    assert caught.value.code == "not_found"
    with pytest.raises(openai.NotFoundError):
        sdk.responses.delete(made.id)


def test_nothing_is_kept_unasked(sdk):
    made = sdk.responses.create(model="demo", input="Hi")
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(made.id)
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.responses.create(model="demo", input="Go on", previous_response_id=made.id)
    assert caught.value.code == "previous_response_not_found"


def test_a_conversation_over_a_restart(tmp_path):
    with served(tmp_path / "state") as client:
        first = client.responses.create(model="demo", input="One", store=True)
        with client.responses.stream(model="demo", input="Two", store=True, previous_response_id=first.id) as stream:
            second = stream.get_final_response()
    with served(tmp_path / "state") as client:
        third = client.responses.create(model="demo", input="Three", store=True, previous_response_id=second.id)
        assert third.previous_response_id == second.id
        items = list(client.responses.input_items.list(third.id, order="asc", limit=2))
        texts = [text_of(item) for item in items]
        assert texts == ["One", first.output_text, "Two", second.output_text, "Three"]
        assert [item.role for item in items] == ["user", "assistant", "user", "assistant", "user"]
        newest = client.responses.input_items.list(third.id)
        assert [text_of(item) for item in newest.data] == texts[::-1]
        assert not newest.has_more


def test_tools_go_round_by_ids(sdk):
    tools = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}]
    first = sdk.responses.create(model="demo", input="Look.", tools=tools, store=True)
    call = next(item for item in first.output if item.type == "function_call")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "a.txt"}
    last = sdk.responses.create(model="demo", input=[result], tools=tools, previous_response_id=first.id)
    assert last.output_text == "It said: a.txt"
    history = [{"role": "user", "content": "Look."}, {"type": "item_reference", "id": call.id}, result]
    assert sdk.responses.create(model="demo", input=history, tools=tools).output_text == "It said: a.txt"


def test_background_is_polled(sdk):
    made = sdk.responses.create(model="demo", input="Slow", background=True)
    assert made.status in ("queued", "in_progress")
    done = wait_for(sdk, made)
    assert done.status == "completed"
    assert done.output_text
    assert done.background


def test_background_is_cancelled(sdk):
    made = sdk.responses.create(model="demo", input="Endless", background=True)
    assert sdk.responses.cancel(made.id).status == "cancelled"
    assert sdk.responses.cancel(made.id).status == "cancelled"
    assert sdk.responses.retrieve(made.id).status == "cancelled"
    plain = sdk.responses.create(model="demo", input="Hi", store=True)
    with pytest.raises(openai.BadRequestError):
        sdk.responses.cancel(plain.id)


def test_a_stream_is_resumed(sdk):
    with sdk.responses.create(model="demo", input="Slow", background=True, stream=True) as stream:
        head = [next(stream) for _ in range(6)]
    made = head[0].response.id
    rest = list(sdk.responses.retrieve(made, stream=True, starting_after=head[-1].sequence_number))
    events = head + rest
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == sdk.responses.retrieve(made).output_text
    again = list(sdk.responses.retrieve(made, stream=True))
    assert [event.to_dict() for event in again] == [event.to_dict() for event in events]
    with sdk.responses.stream(response_id=made, starting_after=4) as resumed:
        assert [event.sequence_number for event in resumed][0] == 5
        assert resumed.get_final_response().output_text == text


def test_a_restart_in_the_middle(tmp_path):
    with killed(demo_command("--state-dir", str(tmp_path / "state"))) as url, openai_at(url) as client:
        made = client.responses.create(model="demo", input="Endless", background=True)
        assert client.responses.retrieve(made.id).status in ("queued", "in_progress")
    with served(tmp_path / "state") as client:
        found = client.responses.retrieve(made.id)
        assert found.status == "failed"
        assert found.error.code == "server_error"
        assert "ended" in found.error.message


def test_input_tokens(sdk):
    counted = sdk.responses.input_tokens.count(model="demo", input="Hi").input_tokens
    assert counted == sdk.responses.create(model="demo", input="Hi").usage.input_tokens > 0


def test_many_at_once(sdk):
    made, errors = [], []

    def work():
        try:
            for _ in range(5):
                made.append(sdk.responses.create(model="demo", input="Hi", store=True, max_output_tokens=3))
        except openai.OpenAIError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert all(sdk.responses.retrieve(one.id).id == one.id for one in made)


def run_privacy(*words, **options):
    words = [command()[0], "privacy", *words]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, **options)


def privacy(*words):
    done = run_privacy(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def holds(state, text):
    return any(text in file.read_bytes() for file in state.iterdir() if file.is_file())


@pytest.fixture
def full_state(tmp_path):
    """A state folder with some 250 kB of a secret in its file."""
    state = tmp_path / "state"
    with served(state) as client:
        for _ in range(40):
            client.responses.create(model="demo", input="xylophone " * 400, store=True, max_output_tokens=3)
    assert holds(state, b"xylophone")
    return state


own_server = pytest.mark.skipif(
    "TANDEM_URL" in os.environ or "TANDEM_COMMAND" in os.environ, reason="needs a program of its own"
)


@own_server
def test_a_purge_takes_a_damaged_file(full_state):
    with served(full_state) as client:
        file = full_state / "state.db"
        half = file.stat().st_size // 2
        with file.open("r+b") as out:
            out.seek(half)
            out.write(b"#" * half)
        words = ("--state-dir", str(full_state))
        met = run_privacy("purge", "--only", "responses", *words)
        assert met.returncode == 1
        assert "damaged" in met.stderr
        assert "purge without --only" in met.stderr
        shown = privacy("show", *words)
        assert "damaged, set aside" in shown
        assert "nothing else is kept" in shown
        assert "may hold more" in privacy("purge", "--only", "responses", *words)
        assert holds(full_state, b"xylophone")
        assert "which was damaged, was erased too" in privacy("purge", *words)
        assert not holds(full_state, b"xylophone")
        assert privacy("show", *words).endswith("\nnothing is kept\n")
        made = client.responses.create(model="demo", input="Hi", store=True, max_output_tokens=3)
        assert client.responses.retrieve(made.id).id == made.id


@own_server
def test_a_purge_needs_no_room(full_state):
    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

    with served(full_state) as client:
        # Python ignores the signal that too large a file sends, and so does what it starts.
        words = ("purge", "--state-dir", str(full_state))
        done = run_privacy(*words, preexec_fn=small_disk, restore_signals=False)
        assert done.returncode == 0, done.stderr
        assert "could not be written: it was erased" in done.stdout
        assert not holds(full_state, b"xylophone")
        made = client.responses.create(model="demo", input="Hi", store=True, max_output_tokens=3)
        assert client.responses.retrieve(made.id).id == made.id


@own_server
def test_keys_and_purge_of_the_real_server(tmp_path):
    state = tmp_path / "state"
    keys = tmp_path / "keys"
    keys.write_text("alpha\nbeta\n")
    words = [*command(), "--state-dir", str(state), "--api-key-file", str(keys)]
    assert "nothing is kept" in privacy("show", "--state-dir", str(state))
    with contextlib.contextmanager(running)(words) as url:
        alpha, beta = (openai_at(url, api_key=key) for key in ("alpha", "beta"))
        model = alpha.models.list().data[0].id
        made = alpha.responses.create(model=model, input="My word is xylophone.", store=True, max_output_tokens=8)
        assert alpha.responses.retrieve(made.id).output_text == made.output_text
        with pytest.raises(openai.NotFoundError):
            beta.responses.retrieve(made.id)
        with pytest.raises(openai.NotFoundError):
            beta.responses.create(model=model, input="Go on", previous_response_id=made.id)
        assert "responses: 1 entries" in privacy("show", "--state-dir", str(state))
        assert any(b"xylophone" in file.read_bytes() for file in state.iterdir() if file.is_file())
        privacy("purge", "--state-dir", str(state))
        with pytest.raises(openai.NotFoundError):
            alpha.responses.retrieve(made.id)
        assert not any(b"xylophone" in file.read_bytes() for file in state.iterdir() if file.is_file())
    assert "nothing is kept" in privacy("show", "--state-dir", str(state))


@own_server
def test_an_end_of_the_real_server_in_the_middle(tmp_path):
    words = [*command(), "--drain", "0", "--state-dir", str(tmp_path / "state")]
    with contextlib.contextmanager(running)(words) as url:
        client = openai_at(url)
        model = client.models.list().data[0].id
        made = client.responses.create(model=model, input="Hi", background=True, extra_body=LONG)
    with contextlib.contextmanager(running)(words) as url:
        client = openai_at(url)
        found = client.responses.retrieve(made.id)
        assert found.status == "failed"
        assert "stopped" in found.error.message


@own_server
def test_truncation_of_the_real_server(tmp_path):
    words = [*command(), "--context", "512", "--state-dir", str(tmp_path / "state")]
    with contextlib.contextmanager(running)(words) as url:
        client = openai_at(url)
        model = client.models.list().data[0].id
        turns = [{"role": role, "content": "word " * 60} for _ in range(8) for role in ("user", "assistant")]
        turns.append({"role": "user", "content": "What is the capital of France?"})
        asked = {"model": model, "input": turns, "max_output_tokens": 8}
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(**asked)
        assert caught.value.code == "context_length_exceeded"
        response = client.responses.create(**asked, truncation="auto")
        assert response.usage.input_tokens < 512
        (warning,) = response.warnings
        assert warning["code"] == "input_truncated"
