"""A turn in the real Pi: what is asked, what is answered, what is told meanwhile."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import Call, Echo, Say, Stall, Step
from pi_session_mcp.host.process import SCRIPT
from pi_session_mcp.host.protocol import MAX_TEXT_UNITS, decode_host_frame
from tests.contract.host.calls import result_of
from tests.support.model_steps import Drop, Fail, Finish, Lie
from tests.support.raw_host import CODING, READ_ONLY, RawHost, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.demo.model import ScriptedModel
    from pi_session_mcp.runtime.locate import Runtime


def test_a_prompt_is_answered(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("hello", Say("good day"))

    assert host.session(workspace).opened().say("hello") == "good day"


def test_a_follow_up_keeps_the_context(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    session = host.session(workspace).opened()
    session.say("my name is Ada")
    session.say("what is my name?")

    texts = [str(message.get("content")) for message in model.requests[-1]["messages"]]

    assert [any(text in seen for seen in texts) for text in ("my name is Ada", "what is my name?")] == [True, True]


def test_sessions_do_not_see_each_other(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    host.session(workspace).opened().say("a secret of the first")
    host.session(workspace).opened().say("hello from the second")

    assert "a secret of the first" not in str(model.requests[-1]["messages"])


def test_a_tools_result_reaches_the_model(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    (workspace / "note.txt").write_text("the note")

    assert result_of(host.session(workspace).opened(), model, "read", path="note.txt") == "the note"


@pytest.mark.parametrize("tools", [READ_ONLY, CODING, ("ls",), ("find", "read"), ()])
def test_the_active_tools_are_those_asked_for_in_their_order(
    host: RawHost, model: ScriptedModel, workspace: Path, tools: tuple[str, ...]
) -> None:
    session = host.session(workspace, tools=tools)
    session.load()

    assert session.open()["activeTools"] == list(tools)
    session.say("hello")
    assert [tool["function"]["name"] for tool in model.requests[-1].get("tools", [])] == list(tools)


def test_a_tool_that_does_not_exist_is_not_active(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace, tools=("read", "nosuch"))
    session.load()

    assert session.open()["activeTools"] == ["read"]


@pytest.mark.parametrize(
    ("asked", "effective"), [("off", "off"), ("high", "high"), ("xhigh", "high"), ("nonsense", "off")]
)
def test_the_thinking_level_is_told_as_it_is(host: RawHost, workspace: Path, asked: str, effective: str) -> None:
    session = host.session(workspace, thinking=asked)
    session.load()

    opened = session.open()

    assert opened["selection"] == {"provider": "scripted", "model": "scripted-1", "thinkingLevel": effective}


@pytest.mark.parametrize("prompt", ["/help", "/skill:x", "/compact", "!ls", "@file", "a\nb", "\u2028\x00"])
def test_a_prompt_is_plain_text(host: RawHost, model: ScriptedModel, workspace: Path, prompt: str) -> None:
    assert host.session(workspace).opened().say(prompt) == "ok"
    assert prompt in str(model.requests[-1]["messages"][-1]["content"]) or prompt in [
        part["text"] for part in model.requests[-1]["messages"][-1]["content"]
    ]


def test_signs_of_life_come_between_the_preflight_and_the_end(
    host: RawHost, model: ScriptedModel, workspace: Path
) -> None:
    model.on("look", Call("ls", {}), Call("ls", {}), Say("done"))
    session = host.session(workspace).opened()
    before = len(host.events)

    session.run("look")

    names = [event["event"] for event in host.events[before:]]
    # Three messages of the assistant, two of them with a tool execution.
    assert names == ["activity"] * 5 + ["settled"]


@pytest.mark.parametrize(
    ("steps", "stop_reason", "text"),
    [
        ([Say("fine")], "stop", "fine"),
        ([Say("")], "stop", ""),
        ([Finish("length", "cut sh")], "length", "cut sh"),
        ([Finish("content_filter", "no")], "error", "no"),
        ([Fail(400)], "error", ""),
        ([Fail(401, "canary-body")], "error", ""),
        ([Fail(503), Say("recovered")], "stop", "recovered"),
    ],
    ids=str,
)
def test_the_outcome_is_that_of_the_last_message(
    host: RawHost, model: ScriptedModel, workspace: Path, steps: list[Step], stop_reason: str, text: str
) -> None:
    model.on("go", *steps)

    outcome = host.session(workspace).opened().run("go")

    assert (outcome["stopReason"], outcome["aborted"], outcome["text"]) == (stop_reason, False, text)


@pytest.mark.parametrize(
    ("steps", "stop_reason", "text"),
    [
        ([Call("ls", text="the findings"), Say("")], "stop", "the findings"),
        ([Call("ls", text="the findings"), Say(" \n")], "stop", "the findings"),
        ([Call("ls", text="first"), Call("ls", text="second"), Call("ls"), Say("")], "stop", "second"),
        ([Call("ls", text="a plan"), Say("the answer")], "stop", "the answer"),
        ([Call("ls", text="the findings"), Finish("length")], "length", "the findings"),
        ([Call("ls", text="the findings"), Drop("half an"), Say("")], "stop", "the findings"),
        (
            [Call("ls", text="the findings"), Drop("half an"), Drop("half of"), Finish("length")],
            "length",
            "the findings",
        ),
        ([Drop("half an"), Say("")], "stop", ""),
        ([Drop("half an"), Finish("length", "whole, but cut")], "length", "whole, but cut"),
        ([Finish("tool_calls", "and now I call")], "toolUse", "and now I call"),
        ([Finish("tool_calls")], "toolUse", ""),
        ([Call("ls", text="a plan"), Fail(400)], "error", ""),
    ],
    ids=str,
)
def test_the_answer_is_the_last_text_of_this_turn_that_pi_did_not_take_back(
    host: RawHost,
    agent_directory: Path,
    model: ScriptedModel,
    workspace: Path,
    steps: list[Step],
    stop_reason: str,
    text: str,
) -> None:
    (agent_directory / "settings.json").write_text('{"retry": {"baseDelayMs": 1}}')
    model.on("go", *steps)
    session = host.session(workspace).opened()
    session.say("an answer of another turn")

    outcome = session.run("go")

    assert (outcome["stopReason"], outcome["text"]) == (stop_reason, text)


def test_a_message_that_pi_takes_back_before_it_summarizes_is_no_answer(runtime: Runtime) -> None:
    """Such as one that was cut because the context was full; a script cannot bring Pi to it with certainty."""
    program = f"""
        import {{ Outcomes }} from {json.dumps(SCRIPT.with_name("outcome.mjs").as_uri())};
        const outcomes = new Outcomes();
        const end = (stopReason, text) => outcomes.ended({{ stopReason, content: [{{ type: "text", text }}] }});
        end("toolUse", "the findings");
        end("length", "half an answer");
        const before = outcomes.outcome;
        outcomes.takenBack();
        end("stop", "");
        console.log(JSON.stringify([before, outcomes.outcome]));
    """
    said = subprocess.run(
        [runtime.node, "--input-type=module", "-e", program], check=True, capture_output=True, timeout=30
    ).stdout

    assert json.loads(said) == [
        {"stopReason": "length", "text": "half an answer"},
        {"stopReason": "stop", "text": "the findings"},
    ]


@pytest.mark.parametrize("step", [Drop(), Lie()], ids=str)
def test_a_stream_that_breaks_is_retried(host: RawHost, model: ScriptedModel, workspace: Path, step: Step) -> None:
    model.on("go", step, Say("recovered"))

    outcome = host.session(workspace).opened().run("go")

    assert outcome["stopReason"] in {"stop", "error"}
    assert "canary" not in str(outcome)


def test_a_session_goes_on_after_a_failed_turn(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("break", Fail(400))
    session = host.session(workspace).opened()

    assert session.run("break")["stopReason"] == "error"
    assert session.say("again") == "ok"


def test_a_second_prompt_during_a_turn_is_refused(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("wait", Stall())
    session = host.session(workspace).opened()
    session.start("wait")

    with pytest.raises(Refused, match="order"):
        session.ask("prompt", turn=99, text="another")
    session.ask("dispose")


def test_a_lone_surrogate_becomes_a_replacement_character(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("odd", Say("a\ud800b\U0001f600c\udc00"))

    assert host.session(workspace).opened().say("odd") == "a\ufffdb\U0001f600c\ufffd"


def test_control_characters_and_line_separators_pass(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    strange = "a\x00b\u2028c\u0085d\r\n\u2029e"
    model.on("odd", Say(strange))

    assert host.session(workspace).opened().say("odd") == strange


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("x" * MAX_TEXT_UNITS, "x" * MAX_TEXT_UNITS),
        ("x" * (MAX_TEXT_UNITS + 1), "x" * MAX_TEXT_UNITS),
        ("x" * (MAX_TEXT_UNITS - 1) + "\U0001f600", "x" * (MAX_TEXT_UNITS - 1) + "\ufffd"),
        ("\x01" * 5_000_000, "\x01" * MAX_TEXT_UNITS),
    ],
    ids=["at the limit", "one past it", "cut inside a character", "far past it"],
)
def test_a_long_answer_is_cut_and_still_a_frame(
    host: RawHost, model: ScriptedModel, workspace: Path, given: str, kept: str
) -> None:
    model.on("much", Say(given))

    assert host.session(workspace).opened().say("much") == kept


def test_every_frame_is_one_of_the_servers_schema(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("look", Call("ls", {}), Echo())
    host.session(workspace).opened().run("look")

    for event in host.events:
        decode_host_frame(json.dumps(event).encode())
