"""The built-in tools do what Pi's own do; `find` does it without `fd`."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import Call, Echo, Say, write_agent_directory
from tests.contract.host.calls import result_of
from tests.support.raw_host import CODING, RawHost, RawSession

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.demo.model import ScriptedModel
    from pi_session_mcp.runtime.locate import Runtime

NOTHING = "No files found matching pattern"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.fixture
def session(host: RawHost, workspace: Path) -> RawSession:
    return host.session(workspace, tools=CODING).opened()


def fill(workspace: Path, *names: str) -> None:
    for name in names:
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("needle\n")


def find(session: RawSession, model: ScriptedModel, pattern: str, **arguments: object) -> list[str]:
    return result_of(session, model, "find", pattern=pattern, **arguments).splitlines()


TREE = ("a.ts", "b.TS", "c.md", ".hidden.ts", "src/a.ts", "src/deep/d.ts", "pkg/src/a.ts", "odd [1].ts")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a.ts", ["a.ts", "pkg/src/a.ts", "src/a.ts"]),
        ("*.ts", [".hidden.ts", "a.ts", "b.TS", "odd [1].ts", "pkg/src/a.ts", "src/a.ts", "src/deep/d.ts"]),
        ("*.TS", ["b.TS"]),
        ("src/*.ts", ["src/a.ts"]),
        ("./src/*.ts", ["src/a.ts"]),
        ("**/src/*.ts", ["pkg/src/a.ts", "src/a.ts"]),
        ("src/**/*.ts", ["src/a.ts", "src/deep/d.ts"]),
        ("src/**", ["src/a.ts", "src/deep/", "src/deep/d.ts"]),
        ("src", ["pkg/src/", "src/"]),
        ("*/src", ["pkg/src/"]),
        ("?.md", ["c.md"]),
        ("[a-b].ts", ["a.ts", "b.TS", "pkg/src/a.ts", "src/a.ts"]),
        ("[!ad].ts", ["b.TS"]),
        ("{c.md,src/d*/*.ts}", ["c.md", "src/deep/d.ts"]),
        ("{c,d}.{md,ts}", ["c.md", "src/deep/d.ts"]),
        ("odd \\[1\\].ts", ["odd [1].ts"]),
        ("**", ["**"]),
        ("nothing*", [NOTHING]),
        ("", [NOTHING]),
    ],
)
def test_find_knows_the_patterns_of_pi(
    session: RawSession, model: ScriptedModel, workspace: Path, pattern: str, found: list[str]
) -> None:
    fill(workspace, *TREE)
    everything = [*TREE, "src/", "src/deep/", "pkg/", "pkg/src/"]

    assert find(session, model, pattern) == (sorted(everything) if found == ["**"] else found)


def test_find_matches_an_absolute_pattern(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    fill(workspace, *TREE)

    assert find(session, model, f"{workspace}/src/*.ts") == ["src/a.ts"]


def test_find_searches_below_a_directory(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    fill(workspace, *TREE)

    assert find(session, model, "*.ts", path="src") == ["a.ts", "deep/d.ts"]
    assert "not a directory" in find(session, model, "*.ts", path="a.ts")[0]


@pytest.mark.parametrize("repository", [False, True])
def test_find_leaves_out_what_is_ignored(
    session: RawSession, model: ScriptedModel, workspace: Path, *, repository: bool
) -> None:
    if repository:
        subprocess.run(["git", "init", "-q", workspace], check=True)  # its `.git` is not listed either
    fill(workspace, "kept", "dropped.log", "build/x", "node_modules/m/x", "sub/node_modules/x", "sub/kept")
    (workspace / ".gitignore").write_text("*.log\nbuild/\n")

    assert find(session, model, "*") == [".gitignore", "kept", "sub/", "sub/kept"]


def test_what_a_repository_ignores_ends_where_a_nested_one_begins(
    session: RawSession, model: ScriptedModel, workspace: Path
) -> None:
    for repository in (workspace, workspace / "nested"):
        subprocess.run(["git", "init", "-q", repository], check=True)
    (workspace / ".gitignore").write_text("*.log\n")
    fill(workspace, "dropped.log", "nested/kept.log")

    assert find(session, model, "*.log") == ["nested/kept.log"]


@pytest.mark.parametrize(("limit", "notice"), [(3, False), (2, True), (0, True)])
def test_find_is_limited(
    session: RawSession, model: ScriptedModel, workspace: Path, limit: int, *, notice: bool
) -> None:
    fill(workspace, "a", "b", "c")

    found = find(session, model, "*", limit=limit)

    assert len([line for line in found if line in "abc" and line]) == max(1, min(limit, 3))
    assert any("results limit reached" in line for line in found) is notice


def test_find_lists_names_of_any_kind(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    names = [" leading", "ünï", "-dash", "\U0001f600.md", "a'b\"c"]
    fill(workspace, *names)

    assert find(session, model, "*") == sorted(names, key=lambda name: name.encode("utf-16-be"))
    assert find(session, model, "?.md") == ["\U0001f600.md"]


@pytest.mark.parametrize("pattern", ["[a", "{a,b", "{" + ",".join("ab" * 600) + "}"])
def test_find_refuses_a_pattern_that_is_none(session: RawSession, model: ScriptedModel, pattern: str) -> None:
    assert "Invalid glob pattern" in find(session, model, pattern)[0]


def test_a_costly_pattern_stalls_nothing(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    fill(workspace, "a" * 250)

    assert find(session, model, "a*" * 120 + "b") == [NOTHING]


def test_grep_works_with_the_installed_ripgrep(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    fill(workspace, "src/a.ts", "b.md")

    assert result_of(session, model, "grep", pattern="need.e", glob="*.ts") == "src/a.ts:1: needle"
    assert result_of(session, model, "grep", pattern="need.e", path="b.md") == "b.md:1: needle"


def test_write_makes_and_replaces_files(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    assert "Successfully" in result_of(session, model, "write", path="new/deep/file", content="long content")
    assert "Successfully" in result_of(session, model, "write", path="new/deep/file", content="short")

    assert (workspace / "new/deep/file").read_text() == "short"


def test_write_keeps_the_mode_of_a_file(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    (workspace / "script").write_text("old")
    (workspace / "script").chmod(0o755)

    result_of(session, model, "write", path="script", content="new")

    assert (workspace / "script").stat().st_mode & 0o777 == 0o755


def test_edit_changes_a_file(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    (workspace / "file").write_text("one two\r\n")

    edits = [{"oldText": "two", "newText": "three"}]

    assert "Successfully replaced 1" in result_of(session, model, "edit", path="file", edits=edits)
    assert (workspace / "file").read_bytes() == b"one three\r\n"


@pytest.mark.parametrize("tool", ["read", "write", "edit"])
def test_a_directory_is_no_file(session: RawSession, model: ScriptedModel, workspace: Path, tool: str) -> None:
    (workspace / "directory").mkdir()
    change: dict[str, object] = {"content": "x"} if tool == "write" else {"edits": [{"oldText": "a", "newText": "b"}]}
    more = {} if tool == "read" else change

    assert "directory" in result_of(session, model, tool, path="directory", **more)


def test_an_image_is_read_as_one(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    (workspace / "picture").write_bytes(PIXEL)

    assert result_of(session, model, "read", path="picture").startswith("Read image file [image/png]")


def test_bash_runs_in_the_workspace(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    model.on("where", Call("bash", {"command": "pwd; echo $0 >&2; exit 3"}), Echo(), Say("x"))

    said = session.say("where")

    assert said.startswith(f"{workspace}\n")
    assert said.endswith("Command exited with code 3")


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    directory = tmp_path / "temporary"
    directory.mkdir()
    return directory


@pytest.fixture
def tidy_host(runtime: Runtime, model: ScriptedModel, tmp_path: Path, temporary: Path) -> Iterator[RawHost]:
    """A host whose temporary files are the test's own."""
    write_agent_directory(tmp_path / "agent", model.base_url)
    with RawHost(runtime, tmp_path / "agent", tmp_path, TMPDIR=str(temporary)) as host:
        host.greet()
        yield host


def test_the_whole_output_of_a_long_command_can_be_read_until_its_session_ends(
    tidy_host: RawHost, model: ScriptedModel, workspace: Path, temporary: Path
) -> None:
    others = [temporary / "pi-bash-of-others.log", workspace / "pi-bash-0123456789abcdef.log"]
    for other in others:
        other.touch()
    session = tidy_host.session(workspace, tools=CODING).opened()
    lie = "; ".join(f"echo '[Full output: {other}]'" for other in others)
    for end in (":", f"{lie}; exit 3"):
        said = result_of(session, model, "bash", command=f"yes | head -c 200000; {end}")
        path = re.findall(r"Full output: (\S+/pi-bash-\w+\.log)\]", said)[-1]
        assert Path(path).stat().st_size >= 200_000
    model.on("for ever", Call("bash", {"command": "yes | head -c 200000; sleep 1000"}))
    session.start("for ever")
    while len(list(temporary.iterdir())) < 4:
        pass

    session.ask("dispose")

    assert [*temporary.iterdir(), *workspace.iterdir()] == others


@pytest.mark.parametrize("what", ["is not there", "is a file", "cannot be written"])
@pytest.mark.parametrize("end", [":", "exit 3"])
def test_a_long_output_that_cannot_be_kept_is_answered_with_its_end(
    tidy_host: RawHost, model: ScriptedModel, workspace: Path, temporary: Path, what: str, end: str
) -> None:
    if what == "cannot be written" and os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    session = tidy_host.session(workspace, tools=CODING).opened()
    temporary.chmod(0o500)
    if what != "cannot be written":
        temporary.rmdir()
    if what == "is a file":
        temporary.write_text("")

    said = result_of(session, model, "bash", command=f"seq 1 50000; {end}")

    assert "49999\n50000" in said
    assert "[The whole output could not be kept" in said
    assert said.endswith("Command exited with code 3") == (end == "exit 3")
    assert result_of(session, model, "bash", command="echo short") == "short\n"


def test_an_abort_of_a_command_whose_output_cannot_be_kept_returns(
    tidy_host: RawHost, model: ScriptedModel, workspace: Path, temporary: Path
) -> None:
    temporary.rmdir()
    os.mkfifo(workspace / "ready")
    model.on("run", Call("bash", {"command": "seq 1 50000; echo ready > ready; sleep 1000"}), Say("over"))
    session = tidy_host.session(workspace, tools=CODING).opened()
    turn = session.start("run")
    assert (workspace / "ready").read_text() == "ready\n"

    assert session.ask("abort") == {}

    assert session.settled(turn)["aborted"]
    assert session.say("hello") == "ok"
