"""The scripted models of the clients: what they read, what they answer, and that a bad result is seen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.live.delegations import DELEGATIONS, DONE
from acceptance.live.dialects import Messages, Responses
from acceptance.live.model import Dialog
from acceptance.live.talk import Asked, Calls, Use, Words, read_result

if TYPE_CHECKING:
    from acceptance.live.dialects import Dialect
    from acceptance.live.talk import Script

OURS = "pi_session_list"


def listing(results: list[object]) -> Script:
    (result,) = yield [Use(OURS)]
    results.append(result["sessions"])
    return "over"


def anthropic(result: str | None) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "call_1_0", "content": [{"type": "text", "text": result}]}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
    if result is not None:
        messages.append({"role": "user", "content": [block]})
    return {"tools": [{"name": f"mcp__pi-session-mcp__{OURS}"}, {"name": "Bash"}], "messages": messages}


def openai(result: str | None) -> dict[str, Any]:
    items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": []}]
    if result is not None:
        items.append({"type": "function_call_output", "call_id": "call_1_0", "output": f"Output:\n{result}"})
    ours = {"type": "namespace", "name": "mcp__pi_session_mcp", "tools": [{"type": "function", "name": OURS}]}
    other = {"type": "namespace", "name": "mcp__other", "tools": [{"type": "function", "name": "pi_session_get"}]}
    return {"tools": [ours, other, {"type": "function", "name": "exec_command"}], "input": items}


@pytest.mark.parametrize(("dialect", "body"), [(Messages(), anthropic), (Responses(), openai)])
def test_a_script_is_played_in_either_dialect(dialect: Dialect, body: Any) -> None:
    results: list[object] = []
    dialog = Dialog(listing(results))

    first = dialog.answer(dialect.read(body(None)))
    assert first == Calls((("call_1_0", Use(OURS)),))
    assert OURS in dialect.stream(first).decode()
    last = dialog.answer(dialect.read(body(json.dumps({"ok": True, "sessions": []}))))

    assert last == Words("over")
    assert "over" in dialect.stream(last).decode()
    assert dialog.is_over
    assert results == [[]]


@pytest.mark.parametrize(("dialect", "body"), [(Messages(), anthropic), (Responses(), openai)])
def test_only_our_own_tools_of_the_first_request_count_as_offered(dialect: Dialect, body: Any) -> None:
    dialog = Dialog(listing([]))
    dialog.answer(dialect.read(body(None)))
    dialog.answer(Asked(frozenset({"pi_session_get"}), {}))

    assert dialog.first_offered is not None
    assert OURS in dialog.first_offered
    assert "pi_session_get" not in dialog.first_offered


def test_a_repeated_question_gets_the_same_answer_and_is_no_further_call() -> None:
    dialog = Dialog(listing([]))
    asked = Asked(frozenset({OURS}), {})

    assert dialog.answer(asked) == dialog.answer(asked)
    assert len(dialog.calls) == 1


@pytest.mark.parametrize("text", ["", "permission was not granted", '{"ok": false, "error": {}}', "[1]", "{"])
def test_a_result_that_a_script_cannot_go_on_with_ends_it_without_success(text: str) -> None:
    dialog = Dialog(listing([]))
    dialog.answer(Asked(frozenset({OURS}), {}))

    assert isinstance(dialog.answer(Asked(frozenset({OURS}), {"call_1_0": text})), Words)
    assert not dialog.is_over
    assert dialog.trouble


def test_words_before_a_result_are_passed_over() -> None:
    assert read_result('Wall time: 1\nOutput:\n{"ok": true}') == {"ok": True}


def test_every_delegation_says_how_many_calls_it_takes_and_each_task_is_given_once() -> None:
    assert len({delegation.prompt for delegation in DELEGATIONS}) == len(DELEGATIONS)
    (four,) = [delegation for delegation in DELEGATIONS if delegation.name == "four_calls"]
    assert four.calls == 4
    assert DONE
