"""What the file tools of a session may touch, whatever its model asks for."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import Call, Say
from tests.contract.host.calls import result_of
from tests.support.raw_host import CODING, RawHost, RawSession

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.demo.model import ScriptedModel

OUTSIDE = "This session can only access files and directories inside its workspace."
TOO_LARGE = "This file is too large for this operation."
MAX_WHOLE_FILE_BYTES = 64 * 1024 * 1024
SPECIAL = "Only regular files and directories can be accessed."

READING: list[tuple[str, dict[str, object]]] = [
    ("read", {}),
    ("ls", {}),
    ("grep", {"pattern": "."}),
    ("find", {"pattern": "*"}),
]
WRITING: list[tuple[str, dict[str, object]]] = [
    ("write", {"content": "written"}),
    ("edit", {"edits": [{"oldText": "secret", "newText": "public"}]}),
]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that is not the workspace's business."""
    outside = tmp_path / "workspace-of-another"
    outside.mkdir()
    (outside / "file").write_text("canary secret")
    return outside


@pytest.fixture
def session(host: RawHost, workspace: Path) -> RawSession:
    return host.session(workspace, tools=CODING).opened()


def ways_out(workspace: Path, outside: Path) -> dict[str, str]:
    """Paths that lead outside, there or not, each by another way."""
    (workspace / "link").symlink_to(outside)
    (workspace / "file-link").symlink_to(outside / "file")
    (workspace / "link-to-nothing").symlink_to(outside / "nothing")
    (workspace / "relative-link").symlink_to(f"../{outside.name}")
    (workspace / "link-to-link").symlink_to("link")
    (workspace / "loop").symlink_to("loop")
    return {
        "absolute": str(outside),
        "absolute file": str(outside / "file"),
        "absolute and missing": str(outside / "nothing"),
        "parent": "..",
        "sideways": f"../{outside.name}/file",
        "through a subdirectory": f"sub/../../{outside.name}",
        "link": "link",
        "below a link": "link/file",
        "missing below a link": "link/nothing/at/all",
        "file link": "file-link",
        "link to nothing": "link-to-nothing",
        "relative link": "relative-link/file",
        "link to a link": "link-to-link/file",
        "loop": "loop",
        "root": "/",
        "home": "~",
        "home with at": "@~/x",
        "url": f"file://{outside}/file",
        "process": "/proc/self/environ",
        "device": "/dev/null",
    }


@pytest.mark.parametrize(("tool", "arguments"), READING + WRITING)
def test_every_way_out_gets_the_same_sentence(
    session: RawSession,
    model: ScriptedModel,
    workspace: Path,
    outside: Path,
    tool: str,
    arguments: dict[str, object],
) -> None:
    for way, path in ways_out(workspace, outside).items():
        assert result_of(session, model, tool, path=path, **arguments) == OUTSIDE, way
    assert (outside / "file").read_text() == "canary secret"
    assert sorted(path.name for path in outside.iterdir()) == ["file"]
    assert "canary" not in json.dumps(model.requests)


@pytest.mark.parametrize(("tool", "arguments"), READING)
def test_a_missing_path_inside_is_said_to_be_missing(
    session: RawSession, model: ScriptedModel, tool: str, arguments: dict[str, object]
) -> None:
    assert result_of(session, model, tool, path="missing", **arguments) != OUTSIDE


def test_links_inside_are_followed(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "real/file").write_text("a needle")
    (workspace / "link").symlink_to("real")

    assert result_of(session, model, "read", path="link/file") == "a needle"
    assert result_of(session, model, "ls", path="link") == "file"
    assert result_of(session, model, "grep", path="link", pattern="needle") == "file:1: a needle"
    assert result_of(session, model, "find", path="link", pattern="*") == "file"


def test_a_workspace_that_is_itself_a_link_is_usable(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    (workspace / "file").write_text("content")
    link = workspace.parent / "link"
    link.symlink_to(workspace)
    session = host.session(link).opened()

    assert result_of(session, model, "read", path="file") == "content"
    assert result_of(session, model, "read", path=str(link / "file")) == "content"
    assert result_of(session, model, "read", path=str(workspace / "file")) == "content"
    assert result_of(session, model, "find", pattern="*") == "file"


def test_a_name_that_only_begins_like_the_workspace_is_outside(
    session: RawSession, model: ScriptedModel, outside: Path, workspace: Path
) -> None:
    assert str(outside).startswith(str(workspace))
    assert result_of(session, model, "read", path=str(outside / "file")) == OUTSIDE


def test_a_listing_does_not_tell_what_is_behind_a_link_out(
    session: RawSession, model: ScriptedModel, workspace: Path, outside: Path
) -> None:
    (workspace / "to-directory").symlink_to(outside)
    (workspace / "to-file").symlink_to(outside / "file")
    (workspace / "to-nothing").symlink_to(outside / "nothing")
    (workspace / "directory").mkdir()

    assert result_of(session, model, "ls") == "directory/\nto-directory\nto-file\nto-nothing"


def test_searches_do_not_follow_links_out(
    session: RawSession, model: ScriptedModel, workspace: Path, outside: Path
) -> None:
    (workspace / "link").symlink_to(outside)
    (workspace / "file-link").symlink_to(outside / "file")

    assert result_of(session, model, "grep", pattern="canary") == "No matches found"
    assert result_of(session, model, "find", pattern="**/*") == "No files found matching pattern"


@pytest.mark.parametrize("file_access", ["workspace", "user"])
@pytest.mark.parametrize(("tool", "arguments"), READING + WRITING)
def test_what_is_no_file_is_refused_in_both_modes(
    host: RawHost,
    model: ScriptedModel,
    workspace: Path,
    tool: str,
    arguments: dict[str, object],
    file_access: str,
) -> None:
    session = host.session(workspace, tools=CODING, file_access=file_access).opened()
    os.mkfifo(workspace / "pipe")
    (workspace / "pipe-link").symlink_to("pipe")
    # The name of a socket may be short only, so it is bound from where it is.
    with socket.socket(socket.AF_UNIX) as listener:
        directory = os.open(workspace, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{directory}/socket")
        os.close(directory)

        for name in ("pipe", "pipe-link", "socket"):
            assert result_of(session, model, tool, path=name, **arguments) == SPECIAL, name


@pytest.mark.parametrize(("tool", "arguments"), READING + WRITING)
def test_a_device_is_refused_even_where_all_may_be_read(
    host: RawHost, model: ScriptedModel, workspace: Path, tool: str, arguments: dict[str, object]
) -> None:
    session = host.session(workspace, tools=CODING, file_access="user").opened()

    assert result_of(session, model, tool, path="/dev/zero", **arguments) == SPECIAL


def test_with_user_access_other_places_can_be_read(
    host: RawHost, model: ScriptedModel, workspace: Path, outside: Path
) -> None:
    session = host.session(workspace, file_access="user").opened()

    assert result_of(session, model, "read", path=str(outside / "file")) == "canary secret"
    assert result_of(session, model, "ls", path=str(outside)) == "file"
    assert result_of(session, model, "grep", path=str(outside), pattern="canary") == "file:1: canary secret"
    assert result_of(session, model, "find", path=str(outside), pattern="*") == "file"


def test_a_pipe_among_files_stalls_no_search(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "file").write_text("needle")

    assert result_of(session, model, "grep", pattern="needle") == "file:1: needle"
    assert result_of(session, model, "find", pattern="*") == "file"
    assert result_of(session, model, "ls") == "file\npipe"


def large_file(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(b"the first line\n")
        file.truncate(size)


def test_a_file_that_may_not_be_held_in_memory_is_read_in_pieces(
    session: RawSession, model: ScriptedModel, workspace: Path
) -> None:
    large_file(workspace / "large", MAX_WHOLE_FILE_BYTES + 1)

    assert result_of(session, model, "read", path="large", limit=1).startswith("the first line\n")


@pytest.mark.parametrize(("size", "read"), [(MAX_WHOLE_FILE_BYTES, True), (MAX_WHOLE_FILE_BYTES + 1, False)])
def test_a_file_is_held_in_memory_up_to_a_limit(
    session: RawSession, model: ScriptedModel, workspace: Path, size: int, *, read: bool
) -> None:
    large_file(workspace / "large", size)

    # An odd range, which the SDK picks from the whole content.
    assert (result_of(session, model, "read", path="large", limit=-1) != TOO_LARGE) is read


def test_a_change_to_a_file_beyond_the_limit_is_refused(
    session: RawSession, model: ScriptedModel, workspace: Path
) -> None:
    large_file(workspace / "large", 3 * 1024**3)

    assert result_of(session, model, "edit", path="large", **WRITING[1][1]) == TOO_LARGE


def test_a_read_only_model_that_calls_what_it_has_not_executes_nothing(
    host: RawHost, model: ScriptedModel, workspace: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    (workspace / "file").write_text("untouched")
    model.on(
        "attack",
        Call("bash", {"command": f"echo ran > {marker}"}),
        Call("write", {"path": "file", "content": "changed"}),
        Call("edit", {"path": "file", "edits": [{"oldText": "untouched", "newText": "changed"}]}),
        Call("mcp__evil__run", {}),
        Call("list_mcp_resources", {}),
        Call("powershell", {"command": "x"}),
        Call("read", {"path": "/etc/passwd"}),
        Call("read", {"path": 7}),
        Call("", {}),
        Say("I give up"),
    )

    outcome = host.session(workspace).opened().run("attack")

    assert (outcome["stopReason"], outcome["text"]) == ("stop", "I give up")
    assert not marker.exists()
    assert (workspace / "file").read_text() == "untouched"
    assert sorted(path.name for path in workspace.iterdir()) == ["file"]
    assert "root:" not in json.dumps(model.requests)
