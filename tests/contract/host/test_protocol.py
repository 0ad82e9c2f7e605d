"""The channel: the greeting, the order of the steps, and what is no frame."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.host.protocol import MAX_FRAME_BYTES, PROTOCOL_VERSION
from pi_session_mcp.runtime.versions import node_is_supported, sdk_is_tested
from tests.support.pi_answers import EXPORTS
from tests.support.raw_host import WAIT_S, RawHost, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime

EXIT_PROTOCOL = 3


@pytest.fixture
def new_host(runtime: Runtime, tmp_path: Path) -> Iterator[RawHost]:
    with RawHost(runtime, tmp_path / "agent", tmp_path) as host:
        yield host


def test_the_greeting_tells_versions_and_exports(new_host: RawHost) -> None:
    hello = new_host.greet()

    assert hello["protocol"] == PROTOCOL_VERSION
    assert node_is_supported(hello["node"])
    assert sdk_is_tested(hello["sdk"])
    assert hello["missing"] == []


def test_a_package_without_the_exports_is_reported_as_such(new_host: RawHost, tmp_path: Path) -> None:
    entry = tmp_path / "other.mjs"
    entry.write_text("export const VERSION = '1.6.0';\n")

    hello = new_host.ask("hello", protocol=1, sdk=str(entry), compileCache=None)

    assert hello["sdk"] == "1.6.0"
    assert sorted(hello["missing"]) == sorted(set(EXPORTS) - {"VERSION"})


@pytest.mark.parametrize("code", ["export const VERSION = '1.6.0';", "throw new Error('broken');", "this is no code"])
def test_a_bundle_that_is_not_whole_is_passed_over_for_the_entry(new_host: RawHost, tmp_path: Path, code: str) -> None:
    bundle = tmp_path / "bundle.mjs"
    bundle.write_text(code)

    hello = new_host.ask(
        "hello", protocol=1, sdk=str(new_host.runtime.sdk_entry), bundle=str(bundle), compileCache=None
    )

    assert hello["missing"] == []


def test_the_bundle_has_the_same_exports_as_the_entry(runtime: Runtime) -> None:
    if runtime.sdk_bundle is None:
        pytest.skip("only the bundle of the pinned version is used")
    script = (
        "const [a, b] = await Promise.all(process.argv.slice(1).map((p) => import(p)));"
        "console.log(JSON.stringify([Object.keys(a).sort(), Object.keys(b).sort()]))"
    )
    entries = [str(runtime.sdk_entry), str(runtime.sdk_bundle)]
    shown = subprocess.run(
        [str(runtime.node), "--input-type=module", "-e", script, *entries], stdout=subprocess.PIPE, check=True
    )
    published, bundled = json.loads(shown.stdout)

    assert published == bundled


def test_a_package_that_cannot_be_imported_is_refused(new_host: RawHost, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        new_host.ask("hello", protocol=1, sdk=str(tmp_path / "missing.mjs"), compileCache=None)

    assert refused.value.code == "sdk_import"
    assert new_host.ask("ping") == {}


def test_nothing_can_be_loaded_before_the_greeting_or_greeted_twice(new_host: RawHost, workspace: Path) -> None:
    with pytest.raises(Refused, match="order"):
        new_host.session(workspace).load()
    new_host.greet()
    with pytest.raises(Refused, match="order"):
        new_host.greet()


def test_a_ping_is_answered_at_once(host: RawHost) -> None:
    assert host.ask("ping") == {}


def test_steps_out_of_order_are_refused(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace)
    with pytest.raises(Refused, match="unknown_session"):
        session.open()
    session.load()
    for step in ("prompt", "abort", "bind"):
        members = {"turn": 1, "text": "x"} if step == "prompt" else {}
        with pytest.raises(Refused, match="order"):
            session.ask(step, **members)
    with pytest.raises(Refused, match="exists"):
        session.load()
    session.open()
    with pytest.raises(Refused, match="order"):
        session.open()
    with pytest.raises(Refused, match="order"):
        session.ask("bind")


def test_a_session_key_is_never_used_again(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace)
    session.load()
    session.ask("dispose")

    with pytest.raises(Refused, match="exists"):
        session.load()


def test_two_steps_at_once_are_refused(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace)
    session.load()
    check: dict[str, object] = {"steps": ["provider"], "selection": session.selection}

    with host.together():
        first, second = session.send("check", **check), session.send("check", **check)

    assert host.answer(first) == {"found": True}
    with pytest.raises(Refused, match="order"):
        host.answer(second)
    assert session.check("provider") is True


def test_a_step_that_failed_leaves_only_dispose(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace / "missing")
    with pytest.raises(Refused, match="workspace"):
        session.load()
    with pytest.raises(Refused, match="order"):
        session.check("provider")

    assert session.ask("dispose") == {}


@pytest.mark.parametrize("tools", [["*"], ["+bash"], ["-read"], ["a" * 65], [""], ["read", "b d"]])
def test_a_tool_name_that_the_sdk_would_read_as_more_than_a_name_is_refused(
    host: RawHost, workspace: Path, tools: list[str]
) -> None:
    session = host.session(workspace, tools=tools)
    session.load()

    with pytest.raises(Refused, match="invalid"):
        session.open()


@pytest.mark.parametrize("relative", [{"cwd": "."}, {"entries": ["ext.ts"]}])
def test_a_relative_path_is_refused(host: RawHost, workspace: Path, relative: dict[str, object]) -> None:
    session = host.session(workspace)
    members: dict[str, object] = {"cwd": str(workspace), "fileAccess": "workspace", "entries": [], **relative}

    with pytest.raises(Refused, match="invalid"):
        session.ask("load", **members)


SELECTION = {"provider": "p", "model": "m", "thinkingLevel": "off"}
OPEN = {"op": "open", "session": 1, "selection": SELECTION, "tools": []}


def frame(**members: object) -> bytes:
    return json.dumps({"id": 1, "op": "ping", **members}).encode() + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"no json\n",
        b"[]\n",
        b"null\n",
        b'{"id":1,"op":"ping"} {}\n',
        b'{"op":"ping"}\n',
        b'{"id":1}\n',
        b'\xef\xbb\xbf{"id":1,"op":"ping"}\n',
        b'{"id":1,"op":"prompt","session":1,"turn":1,"text":"\xff"}\n',
        frame(more=1),
        frame(id="1"),
        frame(id=1.5),
        frame(id=-1),
        frame(id=True),
        frame(op="eval"),
        frame(op="__proto__"),
        frame(op="load", session=1, cwd="/"),
        frame(op="load", session=1, cwd="/", fileAccess="all", entries=[]),
        frame(op="load", session=1, cwd="/", fileAccess="user", entries=[1]),
        frame(op="check", session=1, steps=["all"], selection=SELECTION),
        frame(op="check", session=1, steps="model", selection=SELECTION),
        frame(op="check", session=1, steps=["model"], selection={"provider": "p", "model": "m"}),
        frame(op="check", session=1, steps=["model"], selection={**SELECTION, "more": 1}),
        frame(op="check", session=1, steps=["model"], selection=None),
        frame(op="open", session=1, selection=SELECTION, tools="read"),
        frame(op="prompt", session=1, turn=None, text="x"),
        frame(**OPEN, grants=[{"name": "n", "description": "d"}]),
        frame(**OPEN, grants=[{"name": "n", "description": "d", "parameters": []}]),
        frame(**OPEN, grants=[{"name": "n", "description": "d", "parameters": {}, "more": 1}]),
        frame(**OPEN, grants={}),
        b'{"done":1,"failed":false,"texts":[1]}\n',
        b'{"done":1,"failed":0,"texts":[]}\n',
        b'{"done":1,"texts":[]}\n',
        b'{"done":1,"failed":false,"texts":[],"more":1}\n',
        b'{"done":-1,"failed":false,"texts":[]}\n',
        b'{"done":1,"failed":false,"texts":[],"images":7}\n',
        b'{"done":1,"failed":false,"texts":[],"images":[{"at":0,"data":"","mimeType":"image/tiff"}]}\n',
    ],
    ids=repr,
)
def test_what_is_no_frame_ends_the_host(new_host: RawHost, line: bytes) -> None:
    new_host.send_raw(line)

    assert new_host.next_frame() is None
    assert new_host.process.wait(WAIT_S) == EXIT_PROTOCOL


def padded_ping(size: int) -> bytes:
    """A ping of so many bytes, the newline included; JSON allows the space."""
    line = frame()
    return line[:-1] + b" " * (size - len(line)) + b"\n"


def test_a_line_as_long_as_a_frame_may_be_is_read(new_host: RawHost) -> None:
    new_host.send_raw(padded_ping(MAX_FRAME_BYTES))

    assert new_host.next_frame() == {"re": 1, "ok": True, "result": {}}


def test_a_longer_line_ends_the_host(new_host: RawHost) -> None:
    with suppress(ConnectionError):  # it does not wait for the end of the line
        new_host.send_raw(padded_ping(MAX_FRAME_BYTES + 1))
    assert new_host.process.wait(WAIT_S) == EXIT_PROTOCOL


def test_a_line_without_an_end_ends_the_host(new_host: RawHost) -> None:
    new_host.send_raw(b" " * MAX_FRAME_BYTES)

    assert new_host.process.wait(WAIT_S) == EXIT_PROTOCOL


def test_only_a_newline_ends_a_line(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace).opened()
    strange = "a\u2028b\u2029c\u0085d\x00e\r\nf"

    session.say(strange)

    # Sent as it is, not escaped, so that the line holds what other readers take for line breaks.
    line = json.dumps(
        {"id": 10**6, "op": "prompt", "session": session.key, "turn": 77, "text": strange}, ensure_ascii=False
    )
    host.send_raw(line.encode() + b"\n")
    assert host.answer(10**6) == {"preflight": "started"}
    assert session.settled(77)["stopReason"] == "stop"


def test_frames_in_pieces_and_in_one_piece_are_the_same(new_host: RawHost) -> None:
    for byte in frame(id=1):
        new_host.send_raw(bytes([byte]))
    new_host.send_raw(frame(id=2) + frame(id=3)[:5])
    new_host.send_raw(frame(id=3)[5:])

    assert [new_host.next_frame() for _ in range(3)] == [{"re": n, "ok": True, "result": {}} for n in (1, 2, 3)]


def test_the_end_of_a_call_that_nobody_waits_for_is_ignored(new_host: RawHost) -> None:
    new_host.send_raw(b'{"done":7,"failed":false,"texts":["late"],"details":null}\n')
    assert new_host.ask("ping") == {}
