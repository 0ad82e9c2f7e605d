"""What one call of a file tool may cost. Each bound is tried at its value and one past it."""

from __future__ import annotations

import struct
import sys
import zlib
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import Call, Say
from tests.contract.host.calls import result_of
from tests.support.host_script import run_in_node
from tests.support.raw_host import CODING, RawHost, RawSession

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.demo.model import ScriptedModel
    from pi_session_mcp.runtime.locate import Runtime

MAX_PATTERN_UNITS = 16_384
MAX_PATH_BYTES = 4096
NOTHING = "No files found matching pattern"
TOO_LONG_A_PATTERN = "This pattern is too long."
NO_PATTERN = "This pattern cannot be used: it holds a zero character."
NO_PATH = "This path cannot be used: it is too long or holds a zero character."
TOO_LARGE = "This file is too large for this operation."
TOO_COSTLY = "This operation needs too much time or memory and was ended. Ask for less at once."
needs_a_limit_of_memory = pytest.mark.skipif(
    sys.platform != "linux", reason="needs a system that limits a process's address space"
)


@pytest.fixture
def session(host: RawHost, workspace: Path) -> RawSession:
    return host.session(workspace, tools=CODING).opened()


@pytest.mark.parametrize(
    "pattern",
    [
        "x" * 8000 + "{a,b}" * 9,
        "[" + "".join(map(chr, range(0x4E00, 0x4E00 + MAX_PATTERN_UNITS - 2))) + "]",
        "?" * MAX_PATTERN_UNITS,
        "*a" * (MAX_PATTERN_UNITS // 2),
        "**/" * (MAX_PATTERN_UNITS // 3),
        "{a,b}" * 900,
        "a" * 100 + "{b," * 50 + "c" + "}" * 50,
    ],
    ids=["alternatives", "class", "questions", "stars", "components", "many braces", "deep braces"],
)
def test_a_pattern_of_any_form_is_matched(
    session: RawSession, model: ScriptedModel, workspace: Path, pattern: str
) -> None:
    (workspace / "file").touch()

    assert result_of(session, model, "find", pattern=pattern) == NOTHING


@pytest.mark.parametrize("pattern", ["[b-a]", "{a," * 51 + "b" + "}" * 51, "{" + "," * 1000 + "}", "\\{[", "{[,]"])
def test_a_pattern_that_is_none_is_said_to_be_none(session: RawSession, model: ScriptedModel, pattern: str) -> None:
    assert result_of(session, model, "find", pattern=pattern).startswith("Invalid glob pattern: ")


@pytest.mark.parametrize("argument", ["find pattern", "grep pattern", "grep glob"])
def test_a_pattern_has_a_length(session: RawSession, model: ScriptedModel, argument: str) -> None:
    tool, name = argument.split()

    def said(text: str) -> str:
        return result_of(session, model, tool, **{"pattern": "a", name: text})

    assert said("a" * MAX_PATTERN_UNITS) in {NOTHING, "No matches found"}
    assert said("a" * (MAX_PATTERN_UNITS + 1)) == TOO_LONG_A_PATTERN
    assert said("a\0") == NO_PATTERN


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("read", {}),
        ("ls", {}),
        ("grep", {"pattern": "."}),
        ("find", {"pattern": "*"}),
        ("write", {"content": "x"}),
        ("edit", {"edits": [{"oldText": "a", "newText": "b"}]}),
    ],
)
def test_a_path_has_a_length(session: RawSession, model: ScriptedModel, tool: str, given: dict[str, object]) -> None:
    longest = "a/" * (MAX_PATH_BYTES // 2)

    assert result_of(session, model, tool, path=longest, **given) != NO_PATH
    assert result_of(session, model, tool, path=longest + "a", **given) == NO_PATH
    assert result_of(session, model, tool, path="ä" * (MAX_PATH_BYTES // 2) + "a", **given) == NO_PATH
    assert result_of(session, model, tool, path="a\0", **given) == NO_PATH


def test_a_read_ends_where_its_bound_is(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    body = """
        const { Guard } = await load("guard");
        const lengths = async (bounds) => {
          const guard = new Guard(undefined);
          let bytes = 0;
          for await (const chunk of guard.readChunks(given.file, bounds)) bytes += chunk.length;
          return [bytes, guard.wasCut];
        };
        return [await lengths({ maxBytes: 100 }), await lengths({ maxBytes: 99 }), await lengths({ withinMs: -1 })];
    """

    answer = run_in_node(runtime, tmp_path, body, {"file": str(tmp_path / "file")})

    assert answer == [[100, False], [99, True], [100, False]]


@pytest.mark.matrix  # a gibibyte is read
def test_what_was_read_in_part_is_said_to_be(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    with (workspace / "large").open("wb") as file:
        file.write(b"first\n")
        file.truncate(1024**3 + 1)

    said = result_of(session, model, "read", path="large")

    assert said.startswith("first\n")
    assert said.endswith("[Only the beginning of this file was read, so its lines were not all counted]")


@needs_a_limit_of_memory
def test_a_line_without_end_costs_only_what_it_is_in(
    session: RawSession, model: ScriptedModel, workspace: Path
) -> None:
    (workspace / "line").write_bytes(b"needle" + b"x" * 200_000_000)
    (workspace / "small").write_text("needle")

    assert result_of(session, model, "grep", pattern="needle", path="line") == TOO_COSTLY
    assert result_of(session, model, "grep", pattern="needle").split("\n\n") == [
        "small:1: needle",
        "[Files over 32 MB were left out, since a line in one of them is too long to search]",
    ]


@pytest.mark.parametrize("tool", ["grep", "find"])
def test_a_search_ends_in_time_with_what_it_has(runtime: Runtime, tmp_path: Path, workspace: Path, tool: str) -> None:
    (workspace / "file").write_text("needle\n")
    body = """
        const { Guard } = await load("guard");
        const { grep } = await load("grep");
        const { findFiles } = await load("find");
        const means = { program: given.program, signal: undefined, withinMs: 200 };
        return told(() => new Guard(given.cwd).searchIn(given.cwd, async (place) => given.tool === "grep"
          ? grep({ pattern: "needle" }, { place }, means)
          : findFiles({ pattern: "*", directory: given.cwd, place, limit: 9, ...means })));
    """
    program = tmp_path / "rg"
    # The first line is there, and the rest never comes.
    line = "./file\\0001:0:needle\\n" if tool == "grep" else "file\\000"
    program.write_text(
        f"#!/bin/sh\ncase \" $* \" in *' --null-data '*) exec cat;; esac\nprintf '{line}'\nexec sleep 1000\n"
    )
    program.chmod(0o755)

    said = run_in_node(runtime, tmp_path, body, {"program": str(program), "cwd": str(workspace), "tool": tool})

    early = "The search took too long and was ended early: there may be more. Search a smaller directory"
    if tool == "grep":
        assert said == f"file:1: needle\n\n[{early}]"
    else:
        assert said["notes"] == [early]


def test_an_abort_ends_a_search_and_its_process(runtime: Runtime, tmp_path: Path, workspace: Path) -> None:
    body = """
        const { Guard } = await load("guard");
        const { grep } = await load("grep");
        const { createServer } = await import("node:net");
        const { once } = await import("node:events");
        const { writeFileSync } = await import("node:fs");
        const abort = new AbortController();
        const server = createServer().listen(0, "127.0.0.1");
        await once(server, "listening");
        writeFileSync(given.port, String(server.address().port));
        const means = { program: given.program, signal: abort.signal };
        const said = told(() =>
          new Guard(given.cwd).searchIn(given.cwd, (place) => grep({ pattern: "a" }, { place }, means)));
        const [running] = await once(server, "connection");
        // The kernel closes the connection when the program is gone.
        const ended = once(running.resume(), "close");
        abort.abort();
        await ended;
        server.close();
        return said;
    """
    program, port = tmp_path / "rg", tmp_path / "port"
    program.write_text(
        f"#!{sys.executable}\nimport socket, time\n"
        f"held = socket.create_connection(('127.0.0.1', int(open({str(port)!r}).read())))\ntime.sleep(1000)\n"
    )
    program.chmod(0o755)
    known = {"program": str(program), "cwd": str(workspace), "port": str(port)}

    assert run_in_node(runtime, tmp_path, body, known) == "threw Operation aborted"


def test_only_so_many_calls_of_a_session_run_at_once(runtime: Runtime, tmp_path: Path) -> None:
    body = """
        const { Turnstile } = await load("turnstile");
        const turnstile = new Turnstile(4);
        let [running, most] = [0, 0];
        const call = async () => {
          most = Math.max(most, ++running);
          await new Promise(setImmediate);
          running--;
        };
        const leaving = new AbortController();
        const calls = Array.from({ length: 1000 }, () => turnstile.through(undefined, call));
        const left = told(() => turnstile.through(leaving.signal, call));
        leaving.abort();
        await Promise.all(calls);
        await turnstile.through(undefined, call);
        return [most, await left];
    """

    assert run_in_node(runtime, tmp_path, body) == [4, "threw Operation aborted"]


# Of each: the content's length, how many edits, what the old and the new text repeat, and whether it is costly.
COSTS: list[tuple[int, int, tuple[str, int], tuple[str, int], bool]] = [
    (1_000_000, 2, ("a", 1), ("b", 1), False),
    (1_000_001, 2, ("a", 1), ("b", 1), True),
    (1_000_000, 1, ("a", 200), ("b", 1), False),
    (1_000_000, 1, ("a", 201), ("b", 1), True),
    (100, 1, ("a", 1), ("b", 262_143), False),
    (100, 1, ("a", 1), ("b", 262_144), True),
    (100, 1, ("a\n", 249), ("b\n", 249), False),
    (100, 1, ("a\n", 249), ("b\n", 250), True),
]


def test_a_change_is_costly_by_what_it_goes_through(runtime: Runtime, tmp_path: Path) -> None:
    body = """
        const { isCostly } = await load("cost");
        const text = ([unit, times]) => unit.repeat(times);
        return given.costs.map(([length, count, oldText, newText]) =>
          isCostly(length, Array(count).fill({ oldText: text(oldText), newText: text(newText) })));
    """

    answers = run_in_node(runtime, tmp_path, body, {"costs": COSTS})

    assert answers == [costly for *_, costly in COSTS]


def test_a_costly_change_is_made_like_any(session: RawSession, model: ScriptedModel, workspace: Path) -> None:
    old, new = ("".join(f"{word} {number}\n" for number in range(600)) for word in ("old", "new"))
    (workspace / "file").write_text(f"before\n{old}after\n")

    edits = [{"oldText": old, "newText": new}]

    assert "Successfully replaced 1" in result_of(session, model, "edit", path="file", edits=edits)
    assert (workspace / "file").read_text() == f"before\n{new}after\n"
    assert "Could not find the exact text in file" in result_of(session, model, "edit", path="file", edits=edits)


@pytest.mark.parametrize(("lines", "refused"), [(2_000_000, False), (2_000_001, True)])
def test_a_change_goes_through_so_many_lines(
    session: RawSession, model: ScriptedModel, workspace: Path, lines: int, *, refused: bool
) -> None:
    (workspace / "file").write_bytes(b"\n" * (lines - 1) + b"x")

    said = result_of(session, model, "edit", path="file", edits=[{"oldText": "x", "newText": "y"}])

    assert said == (TOO_LARGE if refused else "Successfully replaced 1 block(s) in file.")


def test_a_costly_change_that_is_aborted_changes_nothing(
    session: RawSession, model: ScriptedModel, workspace: Path
) -> None:
    old, new = ("".join(f"{word} {number}\n" for number in range(30_000)) for word in ("old", "new"))
    (workspace / "file").write_text(old)
    model.on("change it", Call("edit", {"path": "file", "edits": [{"oldText": old, "newText": new}]}), Say("done"))
    turn = session.start("change it")

    session.ask("abort")

    assert session.settled(turn)["aborted"]
    assert (workspace / "file").read_text() == old


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compressobj(9)
    data = b"".join(rows.compress(bytes(width + 1)) for _ in range(height)) + rows.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_an_image_that_unfolds_without_bound_is_left_out(
    session: RawSession, model: ScriptedModel, workspace: Path
) -> None:
    (workspace / "small").write_bytes(png(40, 30))
    (workspace / "bomb").write_bytes(png(16_000, 16_000))

    assert result_of(session, model, "read", path="small").startswith(
        "Read image file [image/png]\n(tool image omitted"
    )
    assert "[Image omitted: could not be resized" in result_of(session, model, "read", path="bomb")


def test_an_error_of_the_system_names_no_place(runtime: Runtime, tmp_path: Path) -> None:
    body = """
        const { told } = await load("told");
        const { spawn } = await import("node:child_process");
        const { readFile } = await import("node:fs/promises");
        const failed = new Promise((resolve) => spawn("/nowhere/rg", []).on("error", resolve));
        const missing = readFile("/nowhere/file").catch((error) => error);
        const argument = readFile("/nowhere/\\0").catch((error) => error);
        const wrapped = new Error(`Cannot read directory: ${(await missing).message}`);
        return [await failed, await missing, await argument, wrapped, new Error("of the SDK"), "/nowhere"].map(
          (error) => told(error).message);
    """

    assert run_in_node(runtime, tmp_path, body) == [
        "ENOENT: no such file or directory",
        "ENOENT: no such file or directory",
        "The operation failed.",
        "Cannot read directory: ENOENT: no such file or directory",
        "of the SDK",
        "The operation failed.",
    ]
