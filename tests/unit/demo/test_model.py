"""The scripted model answers as its script says, and leaves nothing behind."""

from __future__ import annotations

import http.client
import json
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from pi_session_mcp.demo.model import Call, Echo, Recall, Say, ScriptedModel, Stall, Step, write_agent_directory
from tests.support.model_steps import Drop, Fail, Finish, Lie, Silence, Slow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Messages = list[dict[str, Any]]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def post(model: ScriptedModel, messages: Messages) -> http.client.HTTPConnection:
    address = urlsplit(model.base_url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=20)
    body = json.dumps({"model": "scripted-1", "messages": messages, "stream": True})
    connection.request("POST", f"{address.path}/chat/completions", body)
    return connection


def ask(model: ScriptedModel, messages: Messages) -> tuple[int, str]:
    connection = post(model, messages)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def chunks(stream: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in stream.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def answer(stream: str) -> tuple[str, str]:
    """The joined text and the finish reason."""
    choices = [choice for chunk in chunks(stream) for choice in chunk["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices), choices[-1]["finish_reason"]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_a_prompt_without_a_script_is_answered_with_ok(model: ScriptedModel) -> None:
    assert answer(ask(model, [user("anything")])[1]) == ("ok", "stop")


def test_a_script_is_chosen_by_the_last_user_message(model: ScriptedModel) -> None:
    model.on("first", Say("one"))
    model.on("second", Say("two"))

    conversation = [user("first"), {"role": "assistant", "content": "one"}, user([{"type": "text", "text": "second"}])]  # type: ignore[arg-type]

    assert answer(ask(model, conversation)[1]) == ("two", "stop")


def test_the_latest_matching_script_decides(model: ScriptedModel) -> None:
    model.on("a", Say("old"))
    model.on("ab", Say("new"))
    model.on("a", Say("newest"))

    assert answer(ask(model, [user("ab")])[1])[0] == "newest"


def test_each_request_since_the_user_message_gets_the_next_step_and_the_last_repeats(model: ScriptedModel) -> None:
    model.on("go", Call("read", {"path": "x"}), Echo("got "))
    conversation = [user("go")]

    called = chunks(ask(model, conversation)[1])
    function = called[0]["choices"][0]["delta"]["tool_calls"][0]["function"]
    conversation += [{"role": "assistant", "content": None}, {"role": "tool", "content": "a"}]
    first = answer(ask(model, conversation)[1])
    conversation += [{"role": "assistant", "content": None}, {"role": "tool", "content": [{"text": "b"}]}]
    second = answer(ask(model, conversation)[1])

    assert (function["name"], json.loads(function["arguments"])) == ("read", {"path": "x"})
    assert called[1]["choices"][0]["finish_reason"] == "tool_calls"
    assert (first, second) == (("got a", "stop"), ("got ab", "stop"))


def test_tool_results_can_be_told_apart_and_the_first_prompt_recalled(model: ScriptedModel) -> None:
    model.on("go", Echo("got ", separator=", "))
    model.on("again", Recall("you said "))
    conversation = [user("go"), {"role": "tool", "content": "a"}, {"role": "tool", "content": "b"}]

    assert answer(ask(model, conversation)[1])[0] == "got a, b"
    assert answer(ask(model, [*conversation, user("again")])[1])[0] == "you said go"


def test_a_retry_of_a_failed_request_gets_the_next_step(model: ScriptedModel) -> None:
    model.on("retry", Fail(503, "{}"), Say("recovered"))

    assert ask(model, [user("retry")]) == (503, "{}")
    assert answer(ask(model, [user("retry")])[1]) == ("recovered", "stop")


def test_conversations_that_say_the_same_do_not_take_each_others_steps(model: ScriptedModel) -> None:
    model.on("same", Say("first"), Say("later"))

    assert [answer(ask(model, [user("same")])[1])[0] for _ in range(2)] == ["first", "first"]


def test_a_finish_reason_is_passed_on(model: ScriptedModel) -> None:
    model.on("long", Finish("length", "cut"))

    assert answer(ask(model, [user("long")])[1]) == ("cut", "length")


def test_a_slow_answer_comes_in_chunks(model: ScriptedModel) -> None:
    model.on("slow", Slow("abcdefg", chunks=3, gap_s=0))

    stream = ask(model, [user("slow")])[1]

    assert [c["choices"][0]["delta"].get("content") for c in chunks(stream)[:3]] == ["abc", "def", "g"]
    assert answer(stream) == ("abcdefg", "stop")


def test_a_dropped_answer_ends_before_its_length(model: ScriptedModel) -> None:
    model.on("drop", Drop())

    with pytest.raises(http.client.IncompleteRead):
        ask(model, [user("drop")])


def test_a_lie_is_no_event_stream(model: ScriptedModel) -> None:
    model.on("lie", Lie())

    status, text = ask(model, [user("lie")])

    assert status == 200
    with pytest.raises(json.JSONDecodeError):
        json.loads(text.removeprefix("data: "))


@pytest.mark.parametrize("step", [Stall(), Silence()])
def test_a_connection_stays_open_until_its_client_leaves(model: ScriptedModel, step: Step) -> None:
    model.on("wait", step)

    connection = post(model, [user("wait")])
    assert model.wait_until_requested(1)
    assert model.open_connections == 1
    connection.close()

    assert model.wait_until_idle()
    assert model.open_connections == 0


def test_stalled_headers_arrive(model: ScriptedModel) -> None:
    model.on("wait", Stall())

    connection = post(model, [user("wait")])
    response = connection.getresponse()

    assert response.status == 200
    response.close()
    connection.close()


def test_the_end_of_the_block_ends_what_is_still_waiting() -> None:
    before = threading.active_count()
    with ScriptedModel() as model:
        model.on("wait", Silence())
        connection = post(model, [user("wait")])
        assert model.wait_until_requested(1)

    with pytest.raises(http.client.RemoteDisconnected):
        connection.getresponse()
    connection.close()
    assert threading.active_count() == before


def test_requests_are_kept_in_order(model: ScriptedModel) -> None:
    ask(model, [user("a")])
    ask(model, [user("b")])

    assert [request["messages"][0]["content"] for request in model.requests] == ["a", "b"]


def test_an_agent_directory_names_the_endpoint(tmp_path: Path) -> None:
    write_agent_directory(tmp_path / "agent", "http://127.0.0.1:1/v1", models=("a", "b"), api_key="k")

    provider = json.loads((tmp_path / "agent/models.json").read_text())["providers"]["scripted"]

    assert (provider["baseUrl"], provider["apiKey"]) == ("http://127.0.0.1:1/v1", "k")
    assert [entry["id"] for entry in provider["models"]] == ["a", "b"]
