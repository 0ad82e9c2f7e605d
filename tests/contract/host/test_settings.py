"""Which of Pi's settings count for a session, and what a value that cannot be used comes to."""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import Call, Say
from tests.support.model_steps import Fail, Fit
from tests.support.raw_host import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.demo.model import ScriptedModel
    from tests.support.raw_host import RawHost, RawSession

LONGEST_MS = 2**31 - 1
MOST_TOKENS = 2**53 - 1

TIMEOUTS: list[object] = [0, 1.5, LONGEST_MS, "disabled", " Disabled", "60000"]
NO_TIMEOUTS: list[object] = [-1, LONGEST_MS + 1, "", "soon", True, None, [], {}]

GOOD: list[dict[str, object]] = [
    *({"httpIdleTimeoutMs": value} for value in TIMEOUTS),
    {"httpProxy": ""},
    {"httpProxy": "socks5://127.0.0.1:9"},
    {"httpProxy": "https://user:p%40ss@127.0.0.1:9"},
    {"retry": {}},
    {"retry": {"enabled": False, "maxRetries": 100, "baseDelayMs": LONGEST_MS, "maxAgentDelayMs": 0, "maxDelayMs": 5}},
    {"retry": {"provider": {"timeoutMs": 1, "maxRetries": 0, "maxRetryDelayMs": 0}}},
    {"compaction": {"enabled": True, "reserveTokens": 0, "keepRecentTokens": MOST_TOKENS}},
    {"compaction": {"modelOverrides": {"scripted/scripted-1": {"reserveTokens": 1}, "__proto__": {}}}},
    {"images": {"autoResize": False, "blockImages": True}},
    {"theme": 7, "shellPath": {}, "retry": {"unknown": "x"}, "images": {"unknown": None}},
]
BAD: list[dict[str, object]] = [
    *({"httpIdleTimeoutMs": value} for value in NO_TIMEOUTS),
    {"httpProxy": None},
    {"retry": None},
    {"retry": []},
    {"retry": {"enabled": "no"}},
    {"retry": {"maxRetries": 101}},
    {"retry": {"maxRetries": -1}},
    {"retry": {"maxRetries": 1.5}},
    {"retry": {"baseDelayMs": LONGEST_MS + 1}},
    {"retry": {"maxAgentDelayMs": -1}},
    {"retry": {"maxDelayMs": "1"}},
    {"retry": {"provider": 1}},
    {"retry": {"provider": {"timeoutMs": LONGEST_MS + 1}}},
    {"retry": {"provider": {"maxRetries": 101}}},
    {"compaction": {"enabled": 1}},
    {"compaction": {"reserveTokens": -1}},
    {"compaction": {"keepRecentTokens": MOST_TOKENS + 1}},
    {"compaction": {"modelOverrides": {"scripted/other": {"reserveTokens": 0.5}}}},
    {"compaction": {"modelOverrides": []}},
    {"images": {"autoResize": "yes"}},
]


def is_refused(host: RawHost, workspace: Path) -> bool:
    session = host.session(workspace)
    try:
        session.load()
    except Refused as refused:
        return refused.code == "pi_configuration"
    finally:
        session.ask("dispose")
    return False


@pytest.mark.parametrize("values", GOOD, ids=json.dumps)
def test_settings_with_values_that_they_can_have_are_taken(
    host: RawHost, agent_directory: Path, workspace: Path, values: dict[str, object]
) -> None:
    (agent_directory / "settings.json").write_text(json.dumps(values))

    assert host.session(workspace).opened()
    assert not is_refused(host, workspace)


@pytest.mark.parametrize("values", BAD, ids=json.dumps)
def test_settings_with_values_that_they_cannot_have_are_refused(
    host: RawHost, agent_directory: Path, workspace: Path, values: dict[str, object]
) -> None:
    (agent_directory / "settings.json").write_text(json.dumps(values))

    assert is_refused(host, workspace)


@pytest.mark.parametrize("content", ["{", "[]", "null", "{} // comment", '{"retry": {"maxRetries": 1,}}'])
def test_settings_that_are_no_json_object_are_refused(
    host: RawHost, agent_directory: Path, workspace: Path, content: str
) -> None:
    (agent_directory / "settings.json").write_text(content)

    assert is_refused(host, workspace)


@pytest.mark.parametrize("content", ["", "{}", "\ufeff{}"])
def test_empty_settings_are_pis_defaults(host: RawHost, agent_directory: Path, workspace: Path, content: str) -> None:
    (agent_directory / "settings.json").write_text(content)

    assert host.session(workspace).opened().say("hello") == "ok"


@pytest.mark.parametrize("kind", ["a pipe", "a link that leads nowhere"])
def test_a_settings_file_that_is_no_file_is_refused(
    host: RawHost, agent_directory: Path, workspace: Path, kind: str
) -> None:
    path = agent_directory / "settings.json"
    os.mkfifo(path) if kind == "a pipe" else path.symlink_to("nowhere")

    assert is_refused(host, workspace)


def test_retries_are_those_of_the_settings(
    host: RawHost, agent_directory: Path, workspace: Path, model: ScriptedModel
) -> None:
    model.on("busy", Fail(503))
    for retries in (0, 5):
        (agent_directory / "settings.json").write_text(json.dumps({"retry": {"maxRetries": retries, "baseDelayMs": 1}}))
        before = len(model.requests)

        assert host.session(workspace).opened().run(f"busy {retries}")["stopReason"] == "error"
        assert len(model.requests) - before == 1 + retries


def test_a_running_session_keeps_the_settings_that_it_began_with(
    host: RawHost, agent_directory: Path, workspace: Path, model: ScriptedModel
) -> None:
    model.on("busy", Fail(503), Say("done"))
    (agent_directory / "settings.json").write_text(json.dumps({"retry": {"baseDelayMs": 1}}))
    session = host.session(workspace).opened()
    (agent_directory / "settings.json").write_text("{")

    assert session.say("busy") == "done"


@pytest.mark.parametrize(
    "widening",
    [
        {"shellCommandPrefix": "echo prefixed;"},
        {"shellPath": "/bin/false"},
        {"defaultTools": ["bash"]},
        {"defaultProjectTrust": "always"},
        {"skills": ["."], "prompts": ["."], "extensions": ["extension.ts"], "packages": ["npm:nothing"]},
    ],
    ids=lambda values: next(iter(values)),
)
def test_no_setting_widens_what_a_session_may_do(
    host: RawHost, agent_directory: Path, workspace: Path, widening: dict[str, object], model: ScriptedModel
) -> None:
    plain = host.session(workspace, tools=("read", "bash")).opened()
    plain.say("hello")
    (agent_directory / "settings.json").write_text(json.dumps(widening))
    session = host.session(workspace, tools=("read", "bash")).opened()
    session.say("hello")

    usual, seen = model.requests[-2:]
    assert seen["tools"] == usual["tools"]
    assert seen["messages"] == usual["messages"]


WINDOW_TOKENS = 16_384
"""Of a small model on one's own machine."""


def ten_turns(session: RawSession) -> list[str]:
    """How each of ten turns stops whose prompts and answers fill a third of the window."""
    return [str(session.run(f"turn {turn}: " + "word " * 2000)["stopReason"]) for turn in range(10)]


def shrink_window(agent_directory: Path) -> None:
    models = json.loads((agent_directory / "models.json").read_text())
    models["providers"]["scripted"]["models"] = [
        {"id": "scripted-1", "contextWindow": WINDOW_TOKENS, "maxTokens": 1024}
    ]
    (agent_directory / "models.json").write_text(json.dumps(models))


def test_a_conversation_outlives_a_small_window_when_compaction_is_tuned_to_it(
    host: RawHost, agent_directory: Path, workspace: Path, model: ScriptedModel
) -> None:
    shrink_window(agent_directory)
    model.on("turn", Fit("an answer " * 500, window_characters=4 * WINDOW_TOKENS))
    tuned = {"compaction": {"reserveTokens": 1024, "keepRecentTokens": 2048}}
    (agent_directory / "settings.json").write_text(json.dumps(tuned))

    assert ten_turns(host.session(workspace).opened()) == ["stop"] * 10
    assert len(model.requests) > 10


def test_without_room_to_keep_what_is_recent_a_small_window_overflows(
    host: RawHost, agent_directory: Path, workspace: Path, model: ScriptedModel
) -> None:
    shrink_window(agent_directory)
    model.on("turn", Fit("an answer " * 500, window_characters=4 * WINDOW_TOKENS))

    assert ten_turns(host.session(workspace).opened())[-1] == "error"


def wide_image() -> bytes:
    """A picture of one grey line that is wider than Pi sends one."""
    width = 2001

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(width + 1))) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("values", "sent", "as_it_is"),
    [({}, True, False), ({"autoResize": False}, True, True), ({"blockImages": True}, False, False)],
    ids=str,
)
def test_images_are_sent_as_the_settings_say(
    host: RawHost,
    agent_directory: Path,
    workspace: Path,
    model: ScriptedModel,
    values: dict[str, bool],
    sent: bool,  # noqa: FBT001 - a parameter of the test
    as_it_is: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    (agent_directory / "settings.json").write_text(json.dumps({"images": values}))
    models = json.loads((agent_directory / "models.json").read_text())
    models["providers"]["scripted"]["models"][0]["input"] = ["text", "image"]
    (agent_directory / "models.json").write_text(json.dumps(models))
    (workspace / "wide.png").write_bytes(wide_image())
    model.on("look", Call("read", {"path": "wide.png"}), Say("seen"))

    # An image comes to the model as a message of the user's.
    assert host.session(workspace).opened().run("look")["stopReason"] == "stop"

    said = json.dumps(model.requests[-1]["messages"])
    assert ("data:image/png;base64," in said) is sent
    assert (base64.b64encode(wide_image()).decode() in said) is as_it_is
